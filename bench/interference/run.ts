import { cpus, loadavg } from 'node:os';
import { commandLine, exitOnSignals } from '../../test/support/command-line.ts';
import { createStatusLine } from '../../test/support/status-line.ts';
import { type Figures, figuresOf } from './figures.ts';
import { createInterference, SECONDS } from './measure.ts';
import { interferenceTable, writeInterference } from './page.ts';
import { CONTENDERS, type Contender, RESULTS, TITLES, writeResults } from './results.ts';

const DEFAULT_STARTS = 20;

const USAGE = `npx tsx bench/interference/run.ts [options]

Starts a real Open vSwitch under load and measures what it takes from a VM that gets CPUs of its own, in the first ${SECONDS} s of
the VM: with Open vSwitch always on other CPUs, unmanaged, moved by a loop that looks every second, and moved by the node
agent. Takes about ${Math.ceil((DEFAULT_STARTS * CONTENDERS.length * (SECONDS + 1)) / 60)} minutes. Needs Linux, root, two CPUs, Debian's openvswitch-switch, iproute2 and gcc.

  --starts <number>    starts of a VM for each (default ${DEFAULT_STARTS})
  --record             write ${RESULTS}, its table in docs/reference/outcome.md, and interference.svg
  --page               only write the page and the chart again
  --json               print JSON
  --help

Ends with 1 if the measurement failed, with 2 on wrong options.`;

const { values, wholeNumber } = commandLine(USAGE, {
  starts: { type: 'string' },
  record: { type: 'boolean', default: false },
  page: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
});
if (values.page) {
  writeInterference();
  process.exit(0);
}
const starts = wholeNumber('starts', 1) ?? DEFAULT_STARTS;
exitOnSignals();
const progress = createStatusLine(process.stderr, 100);
const load = loadavg()[0] ?? 0;
const interference = await createInterference();
try {
  const figures = {} as Record<Contender, Figures>;
  for (const contender of CONTENDERS) {
    const watched = await interference.watch(contender, starts, (done) =>
      progress.status(`Open vSwitch ${TITLES[contender]}: ${done} of ${starts} starts`),
    );
    figures[contender] = figuresOf(watched);
  }
  progress.end();
  const results = { starts, processors: cpus().length, load, figures };
  if (values.record) {
    writeResults(results);
    writeInterference();
  }
  console.log(values.json ? JSON.stringify(results) : interferenceTable(results));
} finally {
  await interference.remove();
}
process.exit(0);
