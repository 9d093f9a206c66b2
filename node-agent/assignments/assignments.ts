import { join } from 'node:path';
import { createPodResourcesClient, POD_RESOURCES_SOCKET } from '../../kube/kubelet-api/pod-resources-client.ts';
import type { CpuSet } from '../../model/cpu-set.ts';
import { Guard, Listeners } from '../lifecycle/duty.ts';
import type { AgentLogger } from '../telemetry/log-messages.ts';
import { followCheckpoint } from './checkpoint-source.ts';
import { followCpuClaims } from './cpu-claims.ts';
import { type AnswerVerdict, followPodResources } from './pod-resources-source.ts';
import { type AssignmentsView, type Inputs, nextView, type PodResourcesAnswer, UNKNOWN_VIEW } from './view.ts';

export type Assignments = ReturnType<typeof createAssignments>;

export interface AssignmentsDeps {
  readonly kubeletDir: string;
  readonly cdiDir: string;
  readonly online: () => CpuSet;
  readonly log: AgentLogger;
  readonly onFailure: (code: string) => void;
  /** The CPU manager policy of the kubelet's configuration, read where no checkpoint contains it. */
  readonly configuredPolicy?: () => Promise<string | undefined>;
  /** Seconds without a usable checkpoint after which the PodResources API alone decides what is free. Default 30. */
  readonly checkpointGrace?: number;
}

/** A kubelet rewrites its checkpoint when it starts, which takes a few seconds if it has no saved state. */
const CHECKPOINT_GRACE_SECONDS = 30;

/** Tracks who owns which CPUs: the checkpoint is fast and has uids, PodResources has the names and is authoritative. */
export function createAssignments(deps: AssignmentsDeps) {
  const { kubeletDir, cdiDir, online, log, onFailure, checkpointGrace = CHECKPOINT_GRACE_SECONDS } = deps;
  /** `at`: when this process learned of the change, in monotonic milliseconds. */
  const listeners = new Listeners<[AssignmentsView, number]>();
  let view = UNKNOWN_VIEW;
  let inputs: Omit<Inputs, 'online' | 'confirmed'> = {
    checkpoint: { value: undefined, problem: 'cpu_manager_state was not read yet' },
    podResources: { value: undefined, problem: 'the kubelet was not queried yet' },
    claims: { value: undefined, problem: 'the claims were not read yet' },
    alone: false,
    configuredPolicy: undefined,
  };

  let readAt = 0;
  let queriedAt = 0;

  const update = (change: Partial<Inputs>, at: number) => {
    inputs = { ...inputs, ...change };
    view = nextView(view, { ...inputs, online: online(), confirmed: queriedAt >= readAt });
    listeners.notify(view, at);
  };

  return {
    view: () => view,
    subscribe: listeners.subscribe,
    async run(signal: AbortSignal) {
      const socketPath = join(kubeletDir, POD_RESOURCES_SOCKET);
      const client = createPodResourcesClient(socketPath);
      const guard = new Guard();
      try {
        const onPodResources = (reading: Inputs['podResources'], roundStartedAt: number) => {
          queriedAt = roundStartedAt;
          update({ podResources: reading }, performance.now());
          return inputs.alone ? 'poll' : verdictOn(reading.value, view);
        };
        const source = followPodResources({
          client,
          kubeletDir,
          socketPath,
          podsWithCpus: () => new Set(inputs.checkpoint.value?.entries.map(({ podUID }) => podUID)),
          log,
          signal,
          onFailure,
          onReading: onPodResources,
        });
        let grace: NodeJS.Timeout | undefined;
        const standAlone = async () => {
          log.warn({ kubeletDir }, 'cpu_manager_state unusable; using the PodResources API alone');
          const configuredPolicy = await deps.configuredPolicy?.();
          if (grace === undefined || signal.aborted) return;
          update({ alone: true, configuredPolicy }, performance.now());
          source.refresh();
        };
        const onCheckpoint = (reading: Inputs['checkpoint'], at: number) => {
          readAt = performance.now();
          const isUsable = reading.problem === undefined;
          if (isUsable) {
            clearTimeout(grace);
            grace = undefined;
          } else grace ??= setTimeout(() => void standAlone().catch(guard.fail), checkpointGrace * 1000);
          update({ checkpoint: reading, ...(isUsable && { alone: false }) }, at);
          source.refresh();
        };
        signal.addEventListener('abort', () => clearTimeout(grace), { once: true });
        const onClaims = (claims: Inputs['claims'], at: number) => {
          update({ claims }, at);
          source.refresh();
        };
        followCpuClaims({ directory: cdiDir, log, onReading: guard.wrap(onClaims) }, signal);
        followCheckpoint({ directory: kubeletDir, log, onReading: guard.wrap(onCheckpoint) }, signal);
        await guard.until(signal);
      } finally {
        client.close();
      }
    },
  };
}

/** When to query the kubelet again. Changes of its files cause queries at once; see `LATER` for the others. */
export function verdictOn(answer: PodResourcesAnswer | undefined, view: AssignmentsView): AnswerVerdict {
  return view.problems.length === 0 || answer?.allocatable.isEmpty === false ? 'later' : 'soon';
}
