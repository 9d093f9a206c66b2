import { relative, resolve } from 'node:path';
import { Command } from 'commander';
import { usageError } from '../support/exit-status.ts';
import { bundleDirectory } from '../support/output.ts';

interface DemoFlags {
  readonly json?: true;
  readonly keep?: true;
  readonly console?: true;
  readonly writeKubeconfig?: string;
}

export function createCommand(): Command {
  return new Command('demo')
    .description(
      'Start an embedded cluster of four nodes and the three daemons, and run VMs through them step by step. ' +
        'Needs only Node.js. The logs of the daemons are in a folder that it prints with --keep, or if a step fails. ' +
        'Exit status: 0 if every step succeeded.',
    )
    .option('--json', 'print the steps as one JSON document')
    .option('--keep', 'keep everything running afterwards and print how to reach it; Ctrl-C stops it')
    .option('--console', 'like --keep, with more VMs to see in the web console; prints its address')
    .option(
      '--write-kubeconfig <file>',
      'with --keep or --console: create this file with the kubeconfig, and remove it at the end',
    )
    .action(async ({ json, keep, console: page, writeKubeconfig }: DemoFlags, command: Command) => {
      if (writeKubeconfig !== undefined && !keep && !page) {
        throw usageError(
          '--write-kubeconfig needs --keep or --console: without them the cluster ends with the last step',
        );
      }
      const { runDemo } = await import('./demo.ts');
      const { createPrinter } = await import('./printer.ts');
      const dist = bundleDirectory();
      const printer = createPrinter(json === true);
      const succeeded = await runDemo({
        dist,
        packageRoot: resolve(dist, '..'),
        printer,
        keep: keep === true || page === true,
        console: page === true,
        kubeconfig: writeKubeconfig && resolve(writeKubeconfig),
        command: callOf(command),
      });
      process.exitCode = succeeded ? 0 : 1;
    });
}

/** How the user can call this program again: by the path of the bundle, or as `plumbline` or `kubectl plumbline`. */
function callOf(command: Command): string {
  const path = process.argv[1] ?? '';
  return path.endsWith('.mjs') ? `node ${relative('.', path)}` : (command.parent?.name() ?? 'plumbline');
}
