import { cpus } from 'node:os';
import { commandLine } from '../../test/support/command-line.ts';
import { writeBetween } from '../support/write-between.ts';
import { measureAgent } from './agent.ts';
import { measureDaemons } from './control-plane.ts';
import { scalePage } from './page.ts';

const USAGE = `npm run scale -- [options]

Measures the cost of each daemon with a real API server at two numbers of nodes, and extrapolates to others. Takes
about twenty minutes and 4 GB of memory.

  --sizes <few,many>  default 5000,15000
  --write <file>      write it into a page, as docs/reference/outcome.md is; default: print it
  --help

Ends with 2 on wrong options.`;

const { values, refuse } = commandLine(USAGE, {
  sizes: { type: 'string', default: '5000,15000' },
  write: { type: 'string' },
});
const [few = 0, many = 0, ...more] = values.sizes.split(',').map(Number);
if (!(few > 0 && many > few) || more.length > 0 || !Number.isInteger(few) || !Number.isInteger(many)) {
  refuse(`--sizes ${values.sizes}: expected two numbers of nodes, the smaller one first, as 5000,15000`);
}

const progress = (text: string) => console.error(text);
progress('an agent: about three minutes');
const agent = await measureAgent();
progress(JSON.stringify(agent));
progress(`${few} nodes`);
const first = await measureDaemons(few);
progress(JSON.stringify(first));
progress(`${many} nodes`);
const second = await measureDaemons(many);
progress(JSON.stringify(second));

const costsOf = (name: 'webhook' | 'extender') => ({
  few: { nodes: few, cost: first[name] },
  many: { nodes: many, cost: second[name] },
});
const page = scalePage({
  agent,
  webhook: costsOf('webhook'),
  extender: costsOf('extender'),
  machine: `${cpus().length} cores, Node.js ${process.versions.node}`,
});
if (values.write === undefined) console.log(page);
else writeBetween(values.write, 'npm run scale -- --write docs/reference/outcome.md', page);
process.exit(0);
