"""The paper's tables beside ours, with the records behind them."""
