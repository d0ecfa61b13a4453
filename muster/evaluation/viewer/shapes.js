// The shapes of agents and tasks. Each fills a circle of radius r round (x, y); `turn` is its heading in turns, 0 up.

const SIMPLE = 4.5; // pixels: below this radius details are left out

const corners = {
  square: [[-0.85, -0.85], [0.85, -0.85], [0.85, 0.85], [-0.85, 0.85]],
  diamond: [[0, -1.1], [1.1, 0], [0, 1.1], [-1.1, 0]],
  triangle: [[0, -1.2], [0.9, 0.8], [-0.9, 0.8]],
  hexagon: [0, 1, 2, 3, 4, 5].map((k) => [Math.sin((k * Math.PI) / 3), -Math.cos((k * Math.PI) / 3)]),
  dart: [[0, -1.3], [1.15, 1], [0, 0.5], [-1.15, 1]],
};

/** Draw one object. */
export function drawShape(pen, shape, x, y, r, turn, colour, edge) {
  pen.save();
  pen.translate(x, y);
  pen.fillStyle = colour;
  pen.strokeStyle = edge;
  pen.lineWidth = Math.max(1, r * 0.1);
  if (shape === "van") van(pen, r, colour, edge);
  else if (shape === "person" && r >= SIMPLE) person(pen, r);
  else {
    pen.rotate(turn * 2 * Math.PI);
    pen.beginPath();
    if (corners[shape]) {
      for (const [a, b] of corners[shape]) pen.lineTo(a * r, b * r);
      pen.closePath();
    } else pen.arc(0, 0, r, 0, 2 * Math.PI);
    pen.fill();
    pen.stroke();
  }
  pen.restore();
}

function van(pen, r, colour, edge) {
  pen.beginPath();
  pen.roundRect(-r, -0.72 * r, 2 * r, 1.3 * r, 0.25 * r);
  pen.fill();
  pen.stroke();
  if (r < SIMPLE) return;
  pen.fillStyle = "#ffffff";
  pen.fillRect(-0.13 * r, -0.48 * r, 0.26 * r, 0.82 * r);
  pen.fillRect(-0.41 * r, -0.2 * r, 0.82 * r, 0.26 * r);
  pen.fillStyle = colour;
  for (const side of [-0.52, 0.52]) {
    pen.beginPath();
    pen.arc(side * r, 0.6 * r, 0.24 * r, 0, 2 * Math.PI);
    pen.fill();
    pen.stroke();
  }
}

function person(pen, r) {
  pen.beginPath();
  pen.arc(0, -0.5 * r, 0.42 * r, 0, 2 * Math.PI);
  pen.fill();
  pen.beginPath();
  pen.arc(0, 0.85 * r, 0.78 * r, Math.PI, 2 * Math.PI);
  pen.closePath();
  pen.fill();
}

/** An arrow from a to b. */
export function drawArrow(pen, a, b, colour, width) {
  const angle = Math.atan2(b[1] - a[1], b[0] - a[0]);
  const head = 4 * width + 3;
  pen.strokeStyle = pen.fillStyle = colour;
  pen.lineWidth = width;
  pen.beginPath();
  pen.moveTo(...a);
  pen.lineTo(b[0] - head * 0.7 * Math.cos(angle), b[1] - head * 0.7 * Math.sin(angle));
  pen.stroke();
  pen.beginPath();
  pen.moveTo(...b);
  for (const turn of [0.42, -0.42]) pen.lineTo(b[0] - head * Math.cos(angle + turn), b[1] - head * Math.sin(angle + turn));
  pen.closePath();
  pen.fill();
}
