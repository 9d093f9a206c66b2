import { resolve } from 'node:path';
import { Command } from 'commander';
import { bundleDirectory } from '../support/program-files.ts';

interface DemoFlags {
  readonly json?: true;
  readonly keep?: true;
  readonly console?: true;
  readonly kubeconfig?: string;
}

export function createCommand(): Command {
  return new Command('demo')
    .description(
      'Start an embedded cluster of four nodes and the three daemons, and run VMs through them step by step. ' +
        'Needs only Node.js. Exit status: 0 if every step succeeded.',
    )
    .option('--json', 'print the steps as one JSON document')
    .option('--keep', 'keep everything running afterwards and print how to reach it; Ctrl-C stops it')
    .option('--console', 'like --keep, with more VMs to see in the web console; prints its address')
    .option('--kubeconfig <file>', 'with --keep or --console: write the kubeconfig to this file when everything is up')
    .action(async ({ json, keep, console: page, kubeconfig }: DemoFlags) => {
      const { runDemo } = await import('./demo.ts');
      const { createPrinter } = await import('./printer.ts');
      const dist = bundleDirectory();
      const printer = createPrinter(json === true);
      const held = await runDemo({
        dist,
        packageRoot: resolve(dist, '..'),
        printer,
        keep: keep === true || page === true,
        console: page === true,
        kubeconfig: kubeconfig && resolve(kubeconfig),
      });
      process.exitCode = held ? 0 : 1;
    });
}
