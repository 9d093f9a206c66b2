import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { until } from '../../../cli/demo/until.ts';
import type { createVm } from '../../../cli/demo/vms.ts';
import { NAMESPACE, WEBHOOK, WEBHOOK_REQUIRED } from '../../../model/names.ts';
import {
  CUSTOM_RESOURCE_DEFINITIONS,
  MUTATING_WEBHOOKS,
  NODE_TOPOLOGIES,
  ROLE_BINDINGS,
  VALIDATING_WEBHOOKS,
} from '../../../sandbox/api-server/built-in-types.ts';
import {
  certificate,
  daemon,
  deleted,
  fullStateDirectory,
  type Inflict,
  killedSwitch,
  nothing,
  type PidOf,
  restartAgent,
  SLOW_CLOCK,
  stopped,
} from './inflict.ts';

/** One thing that breaks while everything else works. An absent cell means that this output does not name it. */
export interface Break {
  readonly name: string;
  /** Seconds until a part knows that another one is silent: the duration of a Lease or of a probe. Default 0. */
  readonly seconds?: number;
  readonly inflict: Inflict;
  /** The first line of `status`. */
  readonly status?: RegExp;
  /** The first line of `explain` about a VM that is created after the break, or runs before it. */
  readonly vm?: Parameters<typeof createVm>[1] & { readonly runsBefore?: true };
  readonly explain?: RegExp;
  /** A finding, as `area: what`. */
  readonly doctor?: RegExp;
  /** Of `doctor dpu --watch 4` alone. */
  readonly watchesLeases?: true;
}

const notReady = (name: string) => ({ seconds: 15, status: new RegExp(`${name} \\(no replica is ready\\)`) });
const DPU_DEAD = {
  seconds: 3,
  status: /the DPU of dpu \(the DPU is dead/,
  doctor: /^dpu: dpu: /,
  watchesLeases: true,
} as const;
const VSWITCHD_SILENT = {
  seconds: 15,
  status: /numa1 \(OpenVswitchAnswers is False: ovs-vswitchd does not answer/,
  doctor: /^agents: numa1: OpenVswitchAnswers is False \(NoAnswer\): ovs-vswitchd does not answer/,
};
const OVSDB_SILENT = {
  seconds: 15,
  status: /numa1 \(.*(?:OpenVswitchAnswers is False: |; )ovsdb-server does not answer/,
  doctor: /^agents: numa1: OpenVswitchAnswers is False \(NoAnswer\): .*ovsdb-server does not answer/,
};
const vswitchd: PidOf = ({ ovs }) => ovs.pids[0];
const ovsdb: PidOf = ({ ovs }) => ovs.pids[1];
const presents = (fault: string) =>
  new RegExp(`^certificates: pod plumbline-webhook-\\S+ presents a certificate that ${fault}`);

/**
 * Those of a lane run one after the other; the lanes run side by side, and so concern different parts. What is killed
 * permanently is in outages/table.ts.
 */
export const LANES: readonly (readonly Break[])[] = [
  [
    {
      name: 'MutatingWebhookConfiguration deleted',
      inflict: deleted(MUTATING_WEBHOOKS, WEBHOOK),
      status: /plumbline-webhook \(without its MutatingWebhookConfiguration\)/,
      vm: { name: 'undecided', annotated: true },
      explain: /without a decision of Plumbline: the API server did not call its mutating webhook/,
      doctor: /^installed: there is no MutatingWebhookConfiguration plumbline-webhook/,
    },
    {
      name: 'ValidatingWebhookConfiguration deleted',
      inflict: deleted(VALIDATING_WEBHOOKS, WEBHOOK),
      doctor: /^installed: there is no ValidatingWebhookConfiguration plumbline-webhook/,
    },
    {
      name: 'RoleBinding plumbline-webhook-required deleted',
      inflict: deleted(ROLE_BINDINGS, WEBHOOK_REQUIRED, NAMESPACE),
      status: /plumbline-webhook \(switched off: there is no RoleBinding plumbline-webhook-required/,
      vm: { name: 'unswitched', annotated: true },
      explain: /the webhook is now switched off: there is no RoleBinding plumbline-webhook-required/,
      doctor: /^webhook: the webhooks are switched off: there is no RoleBinding/,
    },
    // A connection that the API server has open continues: only who connects sees the certificate.
    { name: 'certificate expired', inflict: certificate(-3), doctor: presents('has expired') },
    { name: 'certificate not yet valid', inflict: certificate(3), doctor: presents('is not valid yet') },
    {
      name: 'webhook hangs (SIGSTOP)',
      inflict: daemon(({ installed }) => installed.webhook),
      ...notReady('plumbline-webhook'),
      vm: { name: 'hung', annotated: true },
      explain: /the webhook does not answer \(context deadline exceeded\)/,
      doctor: /^webhook: .*calls webhook launcher.plumbline.dev without success: context deadline exceeded/,
    },
    {
      name: 'extender hangs (SIGSTOP)',
      inflict: daemon(({ installed }) => installed.schedulerPlugin),
      ...notReady('plumbline-scheduler'),
      vm: { name: 'unasked', annotated: true },
      explain: /the extender in pod plumbline-scheduler-\S+ did not answer/,
      doctor: /^extender: the extender in pod plumbline-scheduler-\S+ does not answer: no answer in time/,
    },
  ],
  [
    {
      name: 'network map corrupt',
      async inflict({ directory }) {
        const file = join(directory, 'numa1-networks.yaml');
        const before = await readFile(file);
        await writeFile(file, 'physnets: [');
        return () => writeFile(file, before);
      },
      status: /numa1 \(NetworkMapValid is False: /,
      doctor: /^agents: numa1: NetworkMapValid is False/,
    },
    {
      name: 'DPU hangs (SIGSTOP)',
      inflict: daemon(({ installed }) => installed.dpuSide.process),
      vm: { name: 'offloaded', annotated: true, node: 'dpu' },
      ...DPU_DEAD,
    },
    { name: 'ovs-vswitchd of the DPU hangs (SIGSTOP)', inflict: stopped(vswitchd), ...DPU_DEAD },
    { name: 'ovsdb-server of the DPU hangs (SIGSTOP)', inflict: stopped(ovsdb), ...DPU_DEAD },
    { name: 'ovs-vswitchd of a host hangs (SIGSTOP)', inflict: stopped(vswitchd), ...VSWITCHD_SILENT },
    { name: 'ovsdb-server of a host hangs (SIGSTOP)', inflict: stopped(ovsdb), ...OVSDB_SILENT },
    {
      name: 'ovs-vswitchd of a host killed (SIGKILL)',
      inflict: killedSwitch('ovs-vswitchd', vswitchd),
      ...VSWITCHD_SILENT,
    },
    {
      name: 'ovsdb-server of a host killed (SIGKILL)',
      inflict: killedSwitch('ovsdb-server', ovsdb),
      ...OVSDB_SILENT,
    },
  ],
  [
    {
      name: 'agent hangs (SIGSTOP)',
      inflict: daemon(({ installed }) => installed.agents.get('smt2')),
      vm: { name: 'reported', annotated: true, node: 'smt2', runsBefore: true },
      explain: /on smt2, whose agent has stopped reporting/,
      seconds: 40,
      status: /the agent on smt2 \(silent\)/,
      doctor: /^agents: \d agents? silent: .*smt2/,
    },
  ],
  [
    {
      // It heals by itself, and the corrupt file is kept.
      name: 'state file corrupt',
      async inflict(stage) {
        const file = join(stage.cluster.node('smt-off').hostRoot, 'var/lib/plumbline/network-map.json');
        await writeFile(file, '{');
        await restartAgent(stage, 'smt-off');
        // Between the corrupt file and the new one there is none.
        const text = () => readFile(file, 'utf8').catch(() => '');
        const isWhole = async () => (await text()).startsWith('{"') || undefined;
        await until('the agent to save its network map again', 60, isWhole);
        if (!existsSync(`${file}.corrupt`)) throw new Error('the corrupt file is not kept');
        return nothing;
      },
    },
    {
      name: 'clock of a node two hours slow',
      async inflict(stage) {
        const clock = join(stage.directory, 'slow-clock.cjs');
        await writeFile(clock, SLOW_CLOCK);
        await restartAgent(stage, 'smt-off', { NODE_OPTIONS: `--require ${clock}` });
        return () => restartAgent(stage, 'smt-off');
      },
      status: /smt-off \(ClockAgrees is False: the node’s clock is 7\d+ s behind the API server’s\)/,
      doctor: /^agents: smt-off: ClockAgrees is False \(ClockDiffers\)/,
    },
    {
      name: 'state directory full',
      inflict: fullStateDirectory('smt-off'),
      status: /smt-off \(StateSaved is False: \S+: ENOSPC/,
      doctor: /^agents: smt-off: StateSaved is False \(FileUnusable\): \S+: ENOSPC/,
    },
  ],
];

/** These concern every part. */
export const LAST: readonly Break[] = [
  {
    // The agent creates it again within a second or two.
    name: 'NodeTopology deleted',
    async inflict(stage) {
      await deleted(NODE_TOPOLOGIES, 'smt2')(stage);
      await until('the report of smt2', 60, () => stage.cluster.client.get(NODE_TOPOLOGIES, undefined, 'smt2')?.status);
      return nothing;
    },
  },
  {
    name: 'definition of NodeTopology deleted',
    inflict: deleted(CUSTOM_RESOURCE_DEFINITIONS, 'nodetopologies.plumbline.dev'),
    status: /^the cluster has no NodeTopology resource: .* its definition was deleted/,
    doctor: /^installed: the cluster has no NodeTopology resource/,
  },
];
