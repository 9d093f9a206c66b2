import { Command } from 'commander';
import packageJson from '../package.json' with { type: 'json' };
import { demoCommand } from './demo/command.ts';
import { doctorCommand } from './doctor/command.ts';
import { ovsCommand } from './ovs/command.ts';

const program = new Command('plumbline')
  .description('Lines virtual machines on Kubernetes up with the hardware below them.')
  .version(packageJson.version)
  .showHelpAfterError('(plumbline --help lists the commands)')
  .addCommand(demoCommand())
  .addCommand(doctorCommand())
  .addCommand(ovsCommand());

program.parseAsync().catch((error: unknown) => {
  process.stderr.write(`plumbline: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
