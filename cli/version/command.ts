import { Command } from 'commander';
import packageJson from '../../package.json' with { type: 'json' };
import { type OutputFormat, print, withOutput } from '../support/output.ts';

interface VersionFlags {
  readonly output?: OutputFormat;
}

export function createCommand(): Command {
  const command = new Command('version')
    .description('Print the version of this command and of the Node.js that runs it.')
    .addHelpText('after', '\nExamples:\n  plumbline version\n  plumbline version -o json')
    .action(async ({ output }: VersionFlags) => {
      const data = { version: packageJson.version, node: process.version };
      await print(output, data, { text: () => [`plumbline ${data.version}, Node.js ${data.node}`] });
    });
  return withOutput(command, ['json', 'yaml']);
}
