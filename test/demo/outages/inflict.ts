import { execFileSync } from 'node:child_process';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type DaemonProcess, startDaemon } from '../../../cli/demo/daemons.ts';
import { DEMO_NODES } from '../../../cli/demo/nodes.ts';
import { agentArgs, OVS_NODE } from '../../../cli/demo/plumbline.ts';
import { AGENT, NAMESPACE, WEBHOOK } from '../../../model/names.ts';
import type { ResourceType } from '../../../sandbox/api-server/built-in-types.ts';
import type { KubeObject } from '../../../sandbox/objects.ts';
import { dist } from '../../support/bundles.ts';
import type { OutageStage } from './stage.ts';

/** Breaks one thing. @returns the fix, which an operator or a controller applies */
export type Inflict = (stage: OutageStage) => Promise<() => Promise<unknown>>;

/** The process of a part. */
export type PidOf = (stage: OutageStage) => number | undefined;

export const nothing = async (): Promise<void> => undefined;

export const stopped =
  (pidOf: PidOf): Inflict =>
  async (stage) => {
    const pid = pidOf(stage) ?? Number.NaN;
    process.kill(pid, 'SIGSTOP');
    return async () => process.kill(pid, 'SIGCONT');
  };

export const daemon = (daemonOf: (stage: OutageStage) => DaemonProcess | undefined) =>
  stopped((stage) => daemonOf(stage)?.pid);

export const deleted =
  (type: ResourceType, name: string, namespace?: string): Inflict =>
  async ({ cluster: { client } }) => {
    const object = client.get(type, namespace, name);
    if (object === undefined) throw new Error(`there is no ${name}`);
    const { metadata, status: _, ...rest } = structuredClone(object) as KubeObject & { status?: unknown };
    await client.delete(type, object);
    const { labels, annotations } = metadata;
    const again = { ...rest, metadata: { name, namespace, labels, annotations } };
    return () => client.create(type, JSON.parse(JSON.stringify(again)) as KubeObject);
  };

const DAY_MILLISECONDS = 86_400_000;

/** @param days from now until its day of validity begins */
export const certificate =
  (days: number): Inflict =>
  async ({ cluster, directory }) => {
    const files = ['tls.crt', 'tls.key'].map((name) => join(directory, 'webhook-tls', name));
    const before = await Promise.all(files.map((file) => readFile(file)));
    const validity = { now: Date.now() + days * DAY_MILLISECONDS, days: 1 };
    const { cert, key } = cluster.authority.issue([`${WEBHOOK}.${NAMESPACE}.svc`], validity);
    const write = async (contents: readonly (string | Buffer)[]) => {
      for (const [index, file] of files.entries()) await writeFile(file, contents[index] ?? '');
    };
    await write([cert, key]);
    return () => write(before);
  };

/** The agent of a node as a process of its own again. @param env more variables */
export async function restartAgent(stage: OutageStage, node: string, env: Readonly<Record<string, string>> = {}) {
  const { installed, pods, cluster, ovs, directory } = stage;
  const description = DEMO_NODES.find(({ name }) => name === node);
  if (description === undefined) throw new RangeError(`no node ${node}`);
  const before = installed.agents.get(node);
  await before?.stop('SIGKILL');
  const args = await agentArgs(description, { cluster, ovs, ovsNode: OVS_NODE, directory });
  const program = join(dist, 'node-agent.cjs');
  const agent = startDaemon({ name: `node-agent-${node}-after-${before?.pid}`, program, args, directory, env });
  installed.agents.set(node, agent);
  pods.add(agent, AGENT, node);
  return agent;
}

/** For `node --require`: a clock that is two hours slow. */
export const SLOW_CLOCK = `
const RealDate = Date;
const slow = () => RealDate.now() - 7_200_000;
globalThis.Date = class extends RealDate {
  constructor(...args) {
    super(...(args.length === 0 ? [slow()] : args));
  }
  static now = slow;
};
`;

/** Kills a daemon of Open vSwitch, which leaves its pidfile and its sockets behind. The fix starts it again. */
export const killedSwitch =
  (name: 'ovs-vswitchd' | 'ovsdb-server', pidOf: PidOf): Inflict =>
  async (stage) => {
    const { ovs, directory, adopt } = stage;
    process.kill(pidOf(stage) ?? Number.NaN, 'SIGKILL');
    const { physnets = {} } = DEMO_NODES.find((node) => node.name === OVS_NODE) ?? {};
    const networks = Object.entries(physnets).flatMap(([physnet, cells]) => ['--physnet', `${physnet}=${cells[0]}`]);
    const args = ['--name', name, '--rundir', ovs.rundir, ...networks];
    return once(async () => {
      const again = startDaemon({ name: `${name}-again`, program: join(dist, 'ovs-stand-in.cjs'), args, directory });
      adopt(() => again.stop());
    });
  };

/** Both `play` and a failure call the fix. */
function once(fix: () => Promise<void>): () => Promise<void> {
  let fixed: Promise<void> | undefined;
  return () => {
    fixed ??= fix();
    return fixed;
  };
}

/** Kibibytes of a state directory. */
const DISK_KIB = 64;

/** The agent starts again with a state directory on a full disk. The fix frees space. */
export const fullStateDirectory =
  (node: string): Inflict =>
  async (stage) => {
    const path = join(stage.cluster.node(node).hostRoot, 'var/lib/plumbline');
    await stage.installed.agents.get(node)?.stop('SIGTERM');
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_KIB}k`, 'plumbline-test', path]);
    stage.adopt(async () => execFileSync('umount', ['-l', path]));
    const ballast = join(path, 'ballast');
    // Without the pages that the lock file of the agent needs, which is empty.
    await writeFile(ballast, Buffer.alloc(DISK_KIB * 1024)).catch(() => undefined);
    await restartAgent(stage, node);
    return async () => rm(ballast, { force: true });
  };
