import { readFile } from 'node:fs/promises';
import type { Shell } from './ssh.ts';

const LOOK = [
  'systemctl is-system-running',
  'systemctl list-jobs --no-legend',
  'systemctl --failed --no-legend',
  'for unit in $(systemctl --failed --no-legend --plain | cut -d" " -f1) kubelet; do journalctl --no-pager -n 8 -u "$unit"; done',
  'cat /proc/loadavg',
].join('; ');
const SERIAL_LINES = 12;

/** What a guest that does not become ready was doing: its units, or without ssh what it printed last. */
export async function whyNotReady(shell: Shell, serialLog: string): Promise<string> {
  return shell.run(`(${LOOK}) 2>&1; true`).catch(async () => {
    const printed = await readFile(serialLog, 'utf8').catch(() => '');
    return `the end of ${serialLog}:\n${printed.trimEnd().split('\n').slice(-SERIAL_LINES).join('\n')}`;
  });
}
