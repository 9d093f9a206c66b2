import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { root } from './bundles.ts';
import { endChild, endsWithUs } from './children.ts';

/** A daemon from its source, as arguments of Node.js. @param main a path below the root of the repository */
export const fromSource = (main: string) => ['--import', 'tsx', join(root, main)] as const;

export type DaemonProcess = ReturnType<typeof startDaemonProcess>;

export function startDaemonProcess(args: readonly string[], env = process.env) {
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'inherit', 'pipe'] });
  endsWithUs(child);
  const lines: Readonly<Record<string, unknown>>[] = [];
  /** Standard error other than log lines. */
  const text: string[] = [];
  createInterface({ input: child.stderr }).on('line', (line) => {
    if (line.startsWith('{"level"')) lines.push(JSON.parse(line));
    else text.push(line);
  });
  return {
    process: child,
    lines,
    text,
    line: (message: string) => lines.find(({ msg }) => msg === message),
    /** GET on the probe port, by default the one that it has logged. */
    async probe(path: string, port = Number(lines.find(({ probePort }) => probePort !== undefined)?.['probePort'])) {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { connection: 'close' } });
      return { status: response.status, body: await response.text() };
    },
    /** Sends SIGTERM and returns the exit status. */
    stop: () => endChild(child, 'SIGTERM', 60),
  };
}
