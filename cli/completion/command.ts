import { Argument, Command } from 'commander';
import { printLines } from '../support/output.ts';
import { SCRIPTS, type Shell } from './scripts.ts';

const EXAMPLES = `
Examples:
  source <(plumbline completion bash)                  # in ~/.bashrc
  source <(plumbline completion zsh)                   # in ~/.zshrc, after compinit
  plumbline completion fish | source                   # in ~/.config/fish/config.fish

As a kubectl plugin, completion works without this where kubectl_complete-plumbline is on the PATH.`;

/** `plumbline completion` */
export function createCommand(): Command {
  return new Command('completion')
    .description('Print a script that completes commands, flags, and the names of VMs, pods and nodes.')
    .addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(SCRIPTS)))
    .addHelpText('after', EXAMPLES)
    .action((shell: Shell) => {
      printLines(SCRIPTS[shell].trimEnd().split('\n'));
    });
}
