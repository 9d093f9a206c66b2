import { basename } from 'node:path';
import { createProgram, runProgram } from './program.ts';
import { printMessage } from './support/output.ts';

/** The name of the call: its own, or one of the names with which kubectl finds a plugin and its completion. */
const calledAs = basename(process.argv[1] ?? '').replace(/\.\w+$/, '');
const args = process.argv.slice(2);

async function main(): Promise<void> {
  const forKubectl = calledAs === 'kubectl_complete-plumbline';
  if (forKubectl || args[0] === '__complete') {
    const { complete } = await import('./completion/complete.ts');
    return complete(forKubectl ? args : args.slice(1), forKubectl, createProgram);
  }
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // The reader (head, less) may close the pipe early; that is not an error.
    if (error.code === 'EPIPE') process.exit(0);
    printMessage(`plumbline: cannot write to standard output: ${error.message}`);
    process.exit(1);
  });
  // No message about this is possible.
  process.stderr.on('error', () => process.exit(1));
  const status = await runProgram(calledAs === 'kubectl-plumbline' ? 'kubectl plumbline' : 'plumbline', args);
  if (status !== undefined) process.exitCode = status;
}

main().catch((error: unknown) => {
  printMessage(`plumbline: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
});
