// Loaded into every process of a run with NODE_OPTIONS: from PLUMBLINE_TEST_BEGUN (ms since 1970) on, timers and clocks go
// PLUMBLINE_TEST_SPEED times as fast, so that a day of faults takes an hour. Sockets, files and work take as long as always.
const { syncBuiltinESMExports } = require('node:module');
const timers = require('node:timers');
const promises = require('node:timers/promises');
const { promisify } = require('node:util');

const speed = Number(process.env.PLUMBLINE_TEST_SPEED);
const begun = Number(process.env.PLUMBLINE_TEST_BEGUN);
/** Real milliseconds of the shortest timer, so that no loop takes all of a processor. */
const SHORTEST = 2;

const RealDate = Date;
const fast = (real) => (real < begun ? real : begun + (real - begun) * speed);
const short = (milliseconds = 0) =>
  milliseconds > 0 && RealDate.now() >= begun ? Math.max(SHORTEST, milliseconds / speed) : milliseconds;

globalThis.Date = class extends RealDate {
  constructor(...args) {
    if (args.length === 0) super(fast(RealDate.now()));
    else super(...args);
  }

  static now() {
    return Math.floor(fast(RealDate.now()));
  }
};
const realNow = performance.now.bind(performance);
performance.now = () => fast(performance.timeOrigin + realNow()) - performance.timeOrigin;

const { setTimeout: realTimeout, clearTimeout: realClear } = timers;
const intervals = new Map();
timers.setTimeout = (work, milliseconds, ...more) => realTimeout(work, short(milliseconds), ...more);
/** A chain of timers, since the speed may change between two. */
timers.setInterval = (work, milliseconds, ...more) => {
  const first = realTimeout(function next() {
    work(...more);
    if (!intervals.has(first)) return;
    const timer = realTimeout(next, short(milliseconds));
    if (!first.isReferenced) timer.unref();
    intervals.set(first, timer);
  }, short(milliseconds));
  first.isReferenced = true;
  const { unref } = first;
  first.unref = () => {
    first.isReferenced = false;
    return unref.call(first);
  };
  intervals.set(first, first);
  return first;
};
timers.clearInterval = (first) => {
  realClear(first);
  realClear(intervals.get(first));
  intervals.delete(first);
};
timers.clearTimeout = timers.clearInterval;
const realDelay = promises.setTimeout;
promises.setTimeout = (milliseconds, ...more) => realDelay(short(milliseconds), ...more);
timers.setTimeout[promisify.custom] = promises.setTimeout;
for (const name of ['setTimeout', 'setInterval', 'clearTimeout', 'clearInterval']) globalThis[name] = timers[name];
syncBuiltinESMExports();
