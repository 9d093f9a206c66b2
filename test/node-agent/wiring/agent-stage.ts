import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { endsWithUs } from '../../support/children.ts';

/** The agent from its source, as arguments of Node.js. */
export const FROM_SOURCE = ['--import', 'tsx', join(import.meta.dirname, '../../../node-agent/main.ts')] as const;

export interface AgentProcess {
  readonly process: ChildProcess;
  readonly lines: Readonly<Record<string, unknown>>[];
  /** Standard error other than log lines. */
  readonly text: string[];
  /** The first log line with that message. */
  line(message: string): Readonly<Record<string, unknown>> | undefined;
  /** GET on the probe port, by default the one that it has logged. */
  probe(path: string, port?: number): Promise<{ status: number; body: string }>;
  /** Sends SIGTERM and returns the exit status. */
  stop(): Promise<number | null>;
}

export function startAgentProcess(args: readonly string[], env = process.env): AgentProcess {
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'inherit', 'pipe'] });
  endsWithUs(child);
  const lines: Record<string, unknown>[] = [];
  const text: string[] = [];
  createInterface({ input: child.stderr }).on('line', (line) => {
    if (line.startsWith('{"level"')) lines.push(JSON.parse(line));
    else text.push(line);
  });
  return {
    process: child,
    lines,
    text,
    line: (message) => lines.find(({ msg }) => msg === message),
    async probe(path, port = Number(lines.find(({ probePort }) => probePort !== undefined)?.['probePort'])) {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { connection: 'close' } });
      return { status: response.status, body: await response.text() };
    },
    async stop() {
      const exited = child.exitCode === null ? once(child, 'exit') : undefined;
      child.kill('SIGTERM');
      await exited;
      return child.exitCode;
    },
  };
}

/** The flag that puts the agent's directories below this one. The default ones belong to this machine. */
export function placesIn(directory: string): string[] {
  const host = ['var/lib/kubelet', 'var/lib/plumbline', 'var/run/openvswitch', 'run/plumbline', 'sys/fs/cgroup'];
  for (const path of [...host, 'etc/cni/net.d', 'opt/cni/bin']) mkdirSync(join(directory, path), { recursive: true });
  return ['--host-root', directory];
}

/** Writes a kubeconfig of this API server, by default one that does not exist. @returns its path */
export function writeKubeconfig(directory: string, server = 'http://127.0.0.1:1'): string {
  const path = join(directory, 'kubeconfig');
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server, 'insecure-skip-tls-verify': true } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    users: [{ name: 'u', user: { token: 'none' } }],
    'current-context': 'x',
  };
  writeFileSync(path, JSON.stringify(config));
  return path;
}
