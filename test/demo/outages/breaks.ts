import { existsSync, readFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type DaemonProcess, startDaemon } from '../../../cli/demo/daemons.ts';
import { DEMO_NODES } from '../../../cli/demo/nodes.ts';
import { agentArgs, OVS_NODE } from '../../../cli/demo/plumbline.ts';
import { until } from '../../../cli/demo/until.ts';
import type { DemoVm } from '../../../cli/demo/vms.ts';
import { AGENT, NAMESPACE, WEBHOOK, WEBHOOK_REQUIRED } from '../../../model/names.ts';
import {
  CUSTOM_RESOURCE_DEFINITIONS,
  MUTATING_WEBHOOKS,
  NODE_TOPOLOGIES,
  type ResourceType,
  ROLE_BINDINGS,
  VALIDATING_WEBHOOKS,
} from '../../../sandbox/api-server/built-in-types.ts';
import type { KubeObject } from '../../../sandbox/objects.ts';
import { dist } from '../../support/bundles.ts';
import type { OutageStage } from './stage.ts';

/** One thing that breaks while everything else works. An absent cell means that this output does not name it. */
export interface Break {
  readonly name: string;
  /** Seconds until a part knows that another one is silent: the duration of a Lease or of a probe. */
  readonly seconds: number;
  /** @returns the fix, which an operator or a controller applies */
  inflict(stage: OutageStage): Promise<() => Promise<unknown>>;
  readonly status?: RegExp;
  /** The first line of `explain` about a VM that is created after the break, or runs before it. */
  readonly vm?: DemoVm & { readonly runsBefore?: true };
  readonly explain?: RegExp;
  /** A finding, as `area: what`. */
  readonly doctor?: RegExp;
  /** Of `doctor dpu --watch 4` alone. */
  readonly watchesLeases?: true;
}

const nothing = async (): Promise<void> => undefined;

const stopped =
  (pidOf: (stage: OutageStage) => number | undefined): Break['inflict'] =>
  async (stage) => {
    const pid = pidOf(stage) ?? Number.NaN;
    process.kill(pid, 'SIGSTOP');
    return async () => process.kill(pid, 'SIGCONT');
  };

const daemon = (daemonOf: (stage: OutageStage) => DaemonProcess | undefined) =>
  stopped((stage) => daemonOf(stage)?.pid);

const deleted =
  (type: ResourceType, name: string, namespace?: string): Break['inflict'] =>
  async ({ cluster: { client } }) => {
    const object = client.get(type, namespace, name);
    if (object === undefined) throw new Error(`there is no ${name}`);
    const { metadata, status: _, ...rest } = structuredClone(object) as KubeObject & { status?: unknown };
    await client.delete(type, object);
    const { labels, annotations } = metadata;
    const again = { ...rest, metadata: { name, namespace, labels, annotations } } as KubeObject;
    return () => client.create(type, JSON.parse(JSON.stringify(again)) as KubeObject);
  };

const DAY_MILLISECONDS = 86_400_000;

/** @param days from now until its day of validity begins */
const certificate =
  (days: number): Break['inflict'] =>
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
async function restartAgent(stage: OutageStage, node: string, env: Readonly<Record<string, string>> = {}) {
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
const SLOW_CLOCK = `
const RealDate = Date;
globalThis.Date = class extends RealDate {
  constructor(...args) {
    if (args.length === 0) super(RealDate.now() - 7_200_000);
    else super(...args);
  }
  static now() {
    return RealDate.now() - 7_200_000;
  }
};
`;

const NOT_READY = String.raw`\s+no replica is ready`;

/** Those of a lane run one after the other; the lanes run side by side, and so concern different parts. */
export const LANES: readonly (readonly Break[])[] = [
  [
    {
      name: 'MutatingWebhookConfiguration deleted',
      seconds: 0,
      inflict: deleted(MUTATING_WEBHOOKS, WEBHOOK),
      status: /without a decision of Plumbline: the API server did not call its mutating webhook/,
      vm: { name: 'undecided', annotated: true },
      explain: /without a decision of Plumbline: the API server did not call its mutating webhook/,
      doctor: /^installed: there is no MutatingWebhookConfiguration plumbline-webhook/,
    },
    {
      name: 'ValidatingWebhookConfiguration deleted',
      seconds: 0,
      inflict: deleted(VALIDATING_WEBHOOKS, WEBHOOK),
      doctor: /^installed: there is no ValidatingWebhookConfiguration plumbline-webhook/,
    },
    {
      name: 'RoleBinding plumbline-webhook-required deleted',
      seconds: 0,
      inflict: deleted(ROLE_BINDINGS, WEBHOOK_REQUIRED, NAMESPACE),
      doctor: /^webhook: the webhooks are switched off: there is no RoleBinding/,
    },
    {
      // A connection that the API server has open continues: only who connects sees the certificate.
      name: 'certificate expired',
      seconds: 0,
      inflict: certificate(-3),
      doctor: /^certificates: pod plumbline-webhook-\S+ presents a certificate that has expired/,
    },
    {
      name: 'certificate not yet valid',
      seconds: 0,
      inflict: certificate(3),
      doctor: /^certificates: pod plumbline-webhook-\S+ presents a certificate that is not valid yet/,
    },
    {
      name: 'webhook hangs (SIGSTOP)',
      seconds: 15,
      inflict: daemon(({ installed }) => installed.webhook),
      status: new RegExp(`plumbline-webhook${NOT_READY}`),
      vm: { name: 'hung', annotated: true },
      explain: /the webhook does not answer \(context deadline exceeded\)/,
      doctor: /^webhook: .*calls webhook launcher.plumbline.dev without success: context deadline exceeded/,
    },
    {
      name: 'extender hangs (SIGSTOP)',
      seconds: 15,
      inflict: daemon(({ installed }) => installed.schedulerPlugin),
      status: new RegExp(`plumbline-scheduler${NOT_READY}`),
      vm: { name: 'unasked', annotated: true },
      explain: /the extender in pod plumbline-scheduler-\S+ did not answer/,
      doctor: /^extender: the extender in pod plumbline-scheduler-\S+ does not answer: no answer in time/,
    },
  ],
  [
    {
      name: 'network map corrupt',
      seconds: 0,
      async inflict({ directory }) {
        const file = join(directory, 'numa1-networks.yaml');
        const before = await readFile(file);
        await writeFile(file, 'physnets: [');
        return () => writeFile(file, before);
      },
      doctor: /^agents: numa1: NetworkMapValid is False/,
    },
    {
      name: 'DPU hangs (SIGSTOP)',
      seconds: 3,
      inflict: daemon(({ installed }) => installed.dpuSide.process),
      status: /dpu\s+the DPU is dead/,
      vm: { name: 'offloaded', annotated: true, node: 'dpu' },
      doctor: /^dpu: dpu: /,
      watchesLeases: true,
    },
    {
      name: 'ovs-vswitchd of the DPU hangs (SIGSTOP)',
      seconds: 3,
      inflict: stopped(({ ovs }) => ovs.pids[0]),
      status: /dpu\s+the DPU is dead/,
      doctor: /^dpu: dpu: /,
      watchesLeases: true,
    },
    {
      name: 'ovsdb-server of the DPU hangs (SIGSTOP)',
      seconds: 3,
      inflict: stopped(({ ovs }) => ovs.pids[1]),
      status: /dpu\s+the DPU is dead/,
      doctor: /^dpu: dpu: /,
      watchesLeases: true,
    },
  ],
  [
    {
      name: 'agent hangs (SIGSTOP)',
      seconds: 40,
      inflict: daemon(({ installed }) => installed.agents.get('smt2')),
      status: /silent[\s\S]*smt2/,
      vm: { name: 'reported', annotated: true, node: 'smt2', runsBefore: true },
      explain: /on smt2, whose agent has stopped reporting/,
      doctor: /^agents: \d agents? silent: .*smt2/,
    },
  ],
  [
    {
      // It heals by itself, and the corrupt file is kept.
      name: 'state file corrupt',
      seconds: 0,
      async inflict(stage) {
        const file = join(stage.directory, 'smt-off-state', 'network-map.json');
        await writeFile(file, '{');
        await restartAgent(stage, 'smt-off');
        const isWhole = () => (readFileSync(file, 'utf8').startsWith('{"') ? true : undefined);
        await until('the agent to save its network map again', 60, () => existsSync(file) && isWhole());
        if (!existsSync(`${file}.corrupt`)) throw new Error('the corrupt file is not kept');
        return nothing;
      },
    },
    {
      name: 'clock of a node two hours slow',
      seconds: 0,
      async inflict(stage) {
        const clock = join(stage.directory, 'slow-clock.cjs');
        await writeFile(clock, SLOW_CLOCK);
        await restartAgent(stage, 'smt-off', { NODE_OPTIONS: `--require ${clock}` });
        return () => restartAgent(stage, 'smt-off');
      },
      status: /silent[\s\S]*smt-off/,
      doctor: /^agents: \d agents? silent: .*smt-off/,
    },
  ],
];

/** These concern every part. */
export const LAST: readonly Break[] = [
  {
    // The agent creates it again within a second or two.
    name: 'NodeTopology deleted',
    seconds: 0,
    async inflict(stage) {
      await deleted(NODE_TOPOLOGIES, 'smt2')(stage);
      await until('the report of smt2', 60, () => stage.cluster.client.get(NODE_TOPOLOGIES, undefined, 'smt2')?.status);
      return nothing;
    },
  },
  {
    name: 'definition of NodeTopology deleted',
    seconds: 0,
    inflict: deleted(CUSTOM_RESOURCE_DEFINITIONS, 'nodetopologies.plumbline.dev'),
    status: /no NodeTopology resource: .* its definition was deleted/,
    doctor: /^installed: the cluster has no NodeTopology resource/,
  },
];
