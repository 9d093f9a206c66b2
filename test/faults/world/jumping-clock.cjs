// Given to Node.js with --require: the process's wall clock is off by the milliseconds that a file says.
const { readFileSync } = require('node:fs');

const file = process.env.PLUMBLINE_TEST_CLOCK;
const RealDate = Date;
const now = () => RealDate.now() + Number(readFileSync(file, 'utf8'));

globalThis.Date = class extends RealDate {
  constructor(...args) {
    if (args.length === 0) super(now());
    else super(...args);
  }

  static now() {
    return now();
  }
};
