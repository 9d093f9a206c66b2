import { commandLine } from '../support/command-line.ts';
import { faultsOfCheckout } from './check.ts';

const USAGE = `npm run lint:style [-- folder]

Checks the words and sentences of pages, comments and string literals against test/style/words.ts. A folder limits what is printed. docs/maintainers/style.md explains the rules.

Ends with 1 if there is a fault, with 2 on a wrong argument.`;

const { positionals, refuse } = commandLine(USAGE, {}, true);
if (positionals.length > 1) refuse(`${positionals.join(' ')}: name one folder`);
const [folder = ''] = positionals;
const faults = faultsOfCheckout().filter(({ file }) => file.startsWith(folder));
for (const { file, line, text, use } of faults) console.error(`${file}:${line}: "${text}": ${use}`);
if (faults.length > 0) console.error(`${faults.length} style faults (docs/maintainers/style.md)`);
process.exit(faults.length > 0 ? 1 : 0);
