import { loadavg } from 'node:os';
import { endAllAtExit } from '../../test/support/children.ts';
import { commandLine, exitOnSignals } from '../../test/support/command-line.ts';
import { createStatusLine } from '../../test/support/status-line.ts';
import { CONTENDERS, type Contender, NRT_ASSETS, nrtScheduler, TITLES } from './contenders.ts';
import { FLEETS, inWords } from './fleets.ts';
import { figuresOf } from './history.ts';
import { writeOutcome } from './page.ts';
import { play } from './play.ts';
import { addResult, RESULTS } from './results.ts';
import { createStream } from './stream.ts';

const DEFAULT_FLEET = '8-smt-2-best-effort';
const DEFAULT_SEED = 1;

const USAGE = `npx tsx bench/outcome/run.ts [options]

Plays one stream of VMs on an emulated fleet with a real kube-apiserver and kube-scheduler, once for each contender, and
counts what VM users notice. A fleet and a contender take about a minute. Needs npm run build, and the programs of the
control plane (KUBEBUILDER_ASSETS, or /usr/local/kubebuilder/bin).

  --fleet <name>       may be given more than once (default ${DEFAULT_FLEET}); see --list
  --contender <name>   may be given more than once: ${CONTENDERS.join(', ')} (default all)
  --seed <number>      of the stream (default ${DEFAULT_SEED})
  --vms <number>       most VMs (default: what fits and a fifth more)
  --record             add the figures to ${RESULTS} and write docs/reference/outcome.md and outcome.svg again
  --page               only write the page and the chart again
  --json               print JSON
  --list               print the fleets' names: nodes, SMT, NUMA nodes, policy of the topology manager
  --help

${NRT_ASSETS}=<directory> names where a kube-scheduler with scheduler-plugins' NodeResourceTopologyMatch is; without it that
contender is skipped. Ends with 1 if a part failed, with 2 on wrong options.`;

const { values, refuse, wholeNumber } = commandLine(USAGE, {
  fleet: { type: 'string', multiple: true },
  contender: { type: 'string', multiple: true },
  seed: { type: 'string' },
  vms: { type: 'string' },
  record: { type: 'boolean', default: false },
  page: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
  list: { type: 'boolean', default: false },
});
if (values.list) {
  for (const fleet of FLEETS) console.log(`${fleet.name.padEnd(26)} ${inWords(fleet)}`);
  process.exit(0);
}
if (values.page) {
  writeOutcome();
  process.exit(0);
}
const fleets = (values.fleet ?? [DEFAULT_FLEET]).map(
  (name) => FLEETS.find((fleet) => fleet.name === name) ?? refuse(`--fleet ${name}: see --list`),
);
const contenders = (values.contender ?? CONTENDERS).map(
  (name) => CONTENDERS.find((one) => one === name) ?? refuse(`--contender ${name}: one of ${CONTENDERS.join(', ')}`),
);
const seed = wholeNumber('seed', 0) ?? DEFAULT_SEED;
const vms = wholeNumber('vms', 1);

exitOnSignals();
// The daemons of a contender are no children of the control plane, which ends its own.
endAllAtExit();
const progress = createStatusLine(process.stderr, 100);
let faults = 0;
for (const fleet of fleets) {
  const stream = createStream({ seed, fleet, vms });
  for (const contender of contenders) {
    if (contender === 'nrt' && nrtScheduler() === undefined) {
      progress.line(`skipped ${TITLES.nrt}: ${NRT_ASSETS} names no directory with a kube-scheduler`);
      continue;
    }
    // The other contenders are still worth measuring.
    await measure(contender, fleet, stream).catch((error: Error) => {
      faults++;
      progress.end();
      progress.line(`${inWords(fleet)}: ${TITLES[contender]}: not recorded: ${error.message}`);
    });
  }
}
process.exit(faults > 0 ? 1 : 0);

async function measure(
  contender: Contender,
  fleet: (typeof FLEETS)[number],
  stream: ReturnType<typeof createStream>,
): Promise<void> {
  const title = `${inWords(fleet)}: ${TITLES[contender]}`;
  const load = loadavg()[0] ?? 0;
  const history = await play({
    contender,
    fleet,
    stream,
    onFault(error) {
      faults++;
      progress.line(`${title}: ${error instanceof Error ? error.message : String(error)}`);
    },
    progress: (text) => progress.status(`${title}: ${text}`),
  });
  progress.end();
  const vfs = stream.vms.filter(({ vf }) => vf).length;
  const result = { fleet: fleet.name, contender, seed, vfs, load, figures: figuresOf(history) };
  if (values.record) {
    addResult(result);
    writeOutcome();
  }
  console.log(values.json ? JSON.stringify(result) : `${title}: ${JSON.stringify(result.figures)}`);
}
