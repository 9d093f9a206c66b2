// Stands in for a daemon: starts, stays, and does nothing.
setInterval(() => {}, 1000);
