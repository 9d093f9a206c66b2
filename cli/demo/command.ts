import { basename, relative, resolve } from 'node:path';
import { Command } from 'commander';
import { bundleDirectory } from '../support/program-files.ts';

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
        'Needs only Node.js. Exit status: 0 if every step succeeded.',
    )
    .option('--json', 'print the steps as one JSON document')
    .option('--keep', 'keep everything running afterwards and print how to reach it; Ctrl-C stops it')
    .option('--console', 'like --keep, with more VMs to see in the web console; prints its address')
    .option(
      '--write-kubeconfig <file>',
      'with --keep or --console: create this file with the kubeconfig, and remove it at the end',
    )
    .action(async ({ json, keep, console: page, writeKubeconfig }: DemoFlags) => {
      const { runDemo } = await import('./demo.ts');
      const { createNewFile } = await import('./new-file.ts');
      const { createPrinter } = await import('./printer.ts');
      const kubeconfig = writeKubeconfig === undefined ? undefined : await createNewFile(resolve(writeKubeconfig));
      const dist = bundleDirectory();
      const printer = createPrinter(json === true);
      const held = await runDemo({
        dist,
        packageRoot: resolve(dist, '..'),
        printer,
        keep: keep === true || page === true,
        console: page === true,
        kubeconfig,
        command: commandLine(),
      });
      process.exitCode = held ? 0 : 1;
    });
}

/** How the user can call this program again: by the name on the PATH, or by the path of the call. */
function commandLine(): string {
  const program = process.argv[1] ?? '';
  return program.endsWith('.mjs') ? `node ${relative('.', program)}` : basename(program);
}
