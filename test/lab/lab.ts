import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** The folder of commands that PLUMBLINE_LAB names; docs/lab.md says what each must do. */
export interface Lab {
  /** The cluster that the lab's node belongs to. Known once `up` has returned. */
  kubeconfig(): string;
  /** Whether the guest answers. */
  isUp(): Promise<boolean>;
  up(): Promise<void>;
  down(): Promise<void>;
  /** Runs a shell command line in the guest as root; returns what it wrote. */
  run(command: string, input?: string): Promise<string>;
  copy(source: string, destination: string): Promise<void>;
}

const COMMANDS = ['up', 'run', 'copy', 'down', 'control-plane'] as const;

/** The lab, or the one line that says what is missing for it. */
export function findLab(env: NodeJS.ProcessEnv): Lab | { readonly missing: string } {
  const folder = env['PLUMBLINE_LAB'];
  if (!folder) {
    return { missing: 'PLUMBLINE_LAB names no lab: set it to a folder of commands as docs/lab.md describes' };
  }
  const lacking = COMMANDS.filter((command) => !existsSync(join(folder, command)));
  if (lacking.length > 0) return { missing: `PLUMBLINE_LAB=${folder} has no ${lacking.join(', ')}; see docs/lab.md` };
  const command = (name: (typeof COMMANDS)[number]) => join(folder, name);

  let startedControlPlane = false;
  return {
    kubeconfig: () => kubeconfigOf(env),
    async isUp() {
      return execute(command('run'), ['true']).then(
        () => true,
        () => false,
      );
    },
    async up() {
      const before = await execute(command('control-plane'), ['status']).catch(() => '');
      startedControlPlane = !/^kube-apiserver running/m.test(before);
      await watched(command('control-plane'), ['up']);
      await watched(command('up'), []);
    },
    async down() {
      await watched(command('down'), []);
      if (startedControlPlane) await watched(command('control-plane'), ['down']);
    },
    run: (line, input) => execute(command('run'), [line], input),
    async copy(source, destination) {
      await execute(command('copy'), [source, destination]);
    },
  };
}

/** KUBECONFIG, else where the lab's control plane writes its own. */
function kubeconfigOf(env: NodeJS.ProcessEnv): string {
  if (env['KUBECONFIG']) return env['KUBECONFIG'];
  const directory = env['LAB_DIR'] || join(env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'plumbline-lab');
  return join(env['K8S_RUN'] || join(directory, 'cp'), 'admin.kubeconfig');
}

/** Runs a command to its end. @throws Error with its last words when it fails */
function execute(file: string, args: readonly string[], input?: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { stdio: 'pipe' });
    let output = '';
    let errors = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      errors += text;
    });
    child.on('error', reject);
    child.stdin.on('error', () => {});
    child.stdin.end(input);
    child.on('close', (status) => {
      if (status === 0) resolve(output);
      else reject(new Error(`${file} ${args.join(' ')} ended with ${status}: ${errors.trim().slice(-500)}`));
    });
  });
}

/** As `execute`, for commands that take long or leave something running: what they write is shown. */
function watched(file: string, args: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { stdio: ['ignore', process.stderr, process.stderr] });
    child.on('error', reject);
    child.on('exit', (status) => {
      if (status === 0) resolve();
      else reject(new Error(`${file} ${args.join(' ')} ended with ${status}`));
    });
  });
}
