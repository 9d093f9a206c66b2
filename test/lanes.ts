import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { root } from './support/bundles.ts';
import { sumOfTallies, type Tally } from './tally.ts';

/**
 * Folders and files of test/ that run side by side, in a process each: half of their time the tests wait for servers to start
 * and for events to come. The lanes take about equally long.
 */
export const LANES: readonly (readonly string[])[] = [
  // The demo's tests look for processes that are left from this checkout's dist/, which the first lane uses.
  ['console', 'demo', 'lanes'],
  [
    ...['cli', 'diagnosis', 'docs', 'faults', 'fuzz', 'github', 'hardware', 'image', 'kube', 'model', 'native'],
    ...['packaging', 'real'],
  ],
  [
    ...['attacks', 'bench', 'imports', 'kubevirt', 'lab', 'layout', 'life', 'manifests', 'node-agent', 'runtime'],
    ...['sandbox', 'scheduler-plugin', 'skew', 'vectors', 'webhook'],
  ],
];

/**
 * Runs each lane in a process of its own, with bundles of its own. The first writes as it goes; the output of another is
 * printed when that one has ended.
 * @throws Error if a lane ended without a result
 */
export async function runLanes(script: string): Promise<Tally> {
  const directory = await mkdtemp(join(tmpdir(), 'plumbline-lanes-'));
  try {
    return sumOfTallies(await Promise.all(LANES.map((folders, index) => runLane(script, folders, index, directory))));
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function runLane(script: string, folders: readonly string[], index: number, directory: string): Promise<Tally> {
  const result = join(directory, `${index}.json`);
  const dist = join(root, 'node_modules/.cache/plumbline', `lane-${index + 1}`);
  const child = spawn(process.execPath, [...process.execArgv, script, ...folders, '--result', result], {
    cwd: root,
    stdio: ['ignore', index === 0 ? 'inherit' : 'pipe', index === 0 ? 'inherit' : 'pipe'],
    env: { ...process.env, ...(index > 0 && { PLUMBLINE_DIST: dist }) },
  });
  // It ends with this process, and its children with it.
  const end = () => child.kill();
  process.once('exit', end);
  const written: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr] as (Readable | null)[])
    stream?.on('data', (chunk: Buffer) => written.push(chunk));
  const how = await new Promise<string>((resolve) =>
    child.once('close', (code, signal) => resolve(signal === null ? `status ${code}` : `signal ${signal}`)),
  );
  process.removeListener('exit', end);
  process.stdout.write(Buffer.concat(written));
  const text = await readFile(result, 'utf8').catch(() => undefined);
  if (text === undefined) throw new Error(`the tests of ${folders.join(', ')} ended with ${how} and without a result`);
  return JSON.parse(text) as Tally;
}
