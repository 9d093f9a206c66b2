import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { until } from '../../../cli/demo/until.ts';
import type { createVm } from '../../../cli/demo/vms.ts';
import { NAMESPACE, SCHEDULER, WEBHOOK, WEBHOOK_REQUIRED } from '../../../model/names.ts';
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
  killed,
  killedSwitch,
  nothing,
  restartAgent,
  SLOW_CLOCK,
  stopped,
} from './inflict.ts';

/** One thing that breaks while everything else works. An absent cell means that this output does not name it. */
export interface Break {
  readonly name: string;
  /** Seconds until a part knows that another one is silent: the duration of a Lease or of a probe. */
  readonly seconds: number;
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

const NOT_READY = String.raw` \(no replica is ready\)`;
const VSWITCHD_SILENT = /numa1 \(OpenVswitchAnswers is False: ovs-vswitchd does not answer/;
const OVSDB_SILENT = /numa1 \(.*(?:OpenVswitchAnswers is False: |; )ovsdb-server does not answer/;

/** Those of a lane run one after the other; the lanes run side by side, and so concern different parts. */
export const LANES: readonly (readonly Break[])[] = [
  [
    {
      name: 'MutatingWebhookConfiguration deleted',
      seconds: 0,
      inflict: deleted(MUTATING_WEBHOOKS, WEBHOOK),
      status: /plumbline-webhook \(without its MutatingWebhookConfiguration\)/,
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
      status: /plumbline-webhook \(switched off: there is no RoleBinding plumbline-webhook-required/,
      vm: { name: 'unswitched', annotated: true },
      explain: /the webhook is now switched off: there is no RoleBinding plumbline-webhook-required/,
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
    {
      name: 'webhook killed (SIGKILL)',
      seconds: 15,
      inflict: killed(({ installed }) => installed.webhook, WEBHOOK),
      status: new RegExp(`plumbline-webhook${NOT_READY}`),
      vm: { name: 'uncalled', annotated: true },
      explain: /failed calling webhook "launcher\.plumbline\.dev"|the webhook does not answer/,
      doctor: /^webhook: no replica of plumbline-webhook is ready/,
    },
    {
      name: 'extender killed (SIGKILL)',
      seconds: 15,
      inflict: killed(({ installed }) => installed.schedulerPlugin, SCHEDULER),
      status: new RegExp(`plumbline-scheduler${NOT_READY}`),
      vm: { name: 'unplaced', annotated: true },
      explain: /the extender in pod plumbline-scheduler-\S+ did not answer/,
      doctor: /^extender: the extender in pod plumbline-scheduler-\S+ does not answer/,
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
      status: /numa1 \(NetworkMapValid is False: /,
      doctor: /^agents: numa1: NetworkMapValid is False/,
    },
    {
      name: 'DPU hangs (SIGSTOP)',
      seconds: 3,
      inflict: daemon(({ installed }) => installed.dpuSide.process),
      status: /the DPU of dpu \(the DPU is dead/,
      vm: { name: 'offloaded', annotated: true, node: 'dpu' },
      doctor: /^dpu: dpu: /,
      watchesLeases: true,
    },
    {
      name: 'ovs-vswitchd of the DPU hangs (SIGSTOP)',
      seconds: 3,
      inflict: stopped(({ ovs }) => ovs.pids[0]),
      status: /the DPU of dpu \(the DPU is dead/,
      doctor: /^dpu: dpu: /,
      watchesLeases: true,
    },
    {
      name: 'ovsdb-server of the DPU hangs (SIGSTOP)',
      seconds: 3,
      inflict: stopped(({ ovs }) => ovs.pids[1]),
      status: /the DPU of dpu \(the DPU is dead/,
      doctor: /^dpu: dpu: /,
      watchesLeases: true,
    },
    {
      name: 'ovs-vswitchd of a host hangs (SIGSTOP)',
      seconds: 15,
      inflict: stopped(({ ovs }) => ovs.pids[0]),
      status: VSWITCHD_SILENT,
      doctor: /^agents: numa1: OpenVswitchAnswers is False \(NoAnswer\): ovs-vswitchd does not answer/,
    },
    {
      name: 'ovsdb-server of a host hangs (SIGSTOP)',
      seconds: 15,
      inflict: stopped(({ ovs }) => ovs.pids[1]),
      status: OVSDB_SILENT,
      doctor: /^agents: numa1: OpenVswitchAnswers is False \(NoAnswer\): .*ovsdb-server does not answer/,
    },
    {
      name: 'DPU killed (SIGKILL)',
      seconds: 3,
      async inflict({ installed: { dpuSide } }) {
        await dpuSide.kill();
        return () => dpuSide.start();
      },
      status: /the DPU of dpu \(the DPU is dead/,
      doctor: /^dpu: dpu: /,
      watchesLeases: true,
    },
    {
      name: 'ovs-vswitchd of a host killed (SIGKILL)',
      seconds: 15,
      inflict: killedSwitch('ovs-vswitchd', ({ ovs }) => ovs.pids[0]),
      status: VSWITCHD_SILENT,
      doctor: /^agents: numa1: OpenVswitchAnswers is False \(NoAnswer\): ovs-vswitchd does not answer/,
    },
    {
      name: 'ovsdb-server of a host killed (SIGKILL)',
      seconds: 15,
      inflict: killedSwitch('ovsdb-server', ({ ovs }) => ovs.pids[1]),
      status: OVSDB_SILENT,
      doctor: /^agents: numa1: OpenVswitchAnswers is False \(NoAnswer\): .*ovsdb-server does not answer/,
    },
  ],
  [
    {
      name: 'agent hangs (SIGSTOP)',
      seconds: 40,
      inflict: daemon(({ installed }) => installed.agents.get('smt2')),
      status: /the agent on smt2 \(silent\)/,
      vm: { name: 'reported', annotated: true, node: 'smt2', runsBefore: true },
      explain: /on smt2, whose agent has stopped reporting/,
      doctor: /^agents: \d agents? silent: .*smt2/,
    },
    {
      name: 'agent killed (SIGKILL)',
      seconds: 40,
      async inflict(stage) {
        await stage.installed.agents.get('smt2')?.stop('SIGKILL');
        return () => restartAgent(stage, 'smt2');
      },
      status: /the agent on smt2 \(silent\)/,
      doctor: /^agents: \d agents? silent: .*smt2/,
    },
  ],
  [
    {
      // It heals by itself, and the corrupt file is kept.
      name: 'state file corrupt',
      seconds: 0,
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
      seconds: 0,
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
      seconds: 0,
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
    status: /^the cluster has no NodeTopology resource: .* its definition was deleted/,
    doctor: /^installed: the cluster has no NodeTopology resource/,
  },
];
