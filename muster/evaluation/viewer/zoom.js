// Zoom: Ctrl and the wheel (or two fingers), a double click; drag to move the enlarged picture.

const MOST = 12;

export class Zoom {
  constructor(canvas, onChange) {
    [this.factor, this.shift, this.onChange] = [1, [0, 0], onChange];
    this.dragged = false;
    const place = (event) => [event.offsetX, event.offsetY];
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.by(Math.exp(-event.deltaY / 300), place(event));
    }, { passive: false });
    canvas.addEventListener("dblclick", (event) => this.by(event.shiftKey || this.factor >= 4 ? 0 : 2, place(event)));
    canvas.addEventListener("pointerdown", (event) => {
      this.dragged = false;
      this.from = this.factor > 1 ? place(event) : null;
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!this.from || !event.buttons) return;
      const here = place(event);
      const way = [here[0] - this.from[0], here[1] - this.from[1]];
      if (!this.dragged && Math.hypot(...way) < 4) return;
      this.dragged = true;
      this.shift = [this.shift[0] + way[0], this.shift[1] + way[1]];
      this.from = here;
      this.onChange();
    });
  }

  /** Enlarge round a point; 0 shows everything again. */
  by(factor, [x, y]) {
    const next = factor ? Math.max(1, Math.min(MOST, this.factor * factor)) : 1;
    const ratio = next / this.factor;
    this.shift = next === 1 ? [0, 0] : [x - (x - this.shift[0]) * ratio, y - (y - this.shift[1]) * ratio];
    this.factor = next;
    this.onChange();
  }

  /** The enlarged view (see `fit`). */
  apply(view) {
    const { factor, shift: [dx, dy] } = this;
    if (factor === 1) return view;
    const [x, y, wide, high] = view.box;
    return {
      scale: view.scale * factor,
      to: (place) => view.to(place).map((pixel, axis) => pixel * factor + (axis ? dy : dx)),
      from: ([a, b]) => view.from([(a - dx) / factor, (b - dy) / factor]),
      bounds: view.bounds,
      box: [x * factor + dx, y * factor + dy, wide * factor, high * factor],
    };
  }
}
