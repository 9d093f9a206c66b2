import { join } from 'node:path';
import { createPodResourcesClient, POD_RESOURCES_SOCKET } from '../../kube/kubelet-api/pod-resources-client.ts';
import type { CpuSet } from '../../model/cpu-set.ts';
import { Guard, Listeners } from '../lifecycle/duty.ts';
import type { AgentLogger } from '../telemetry/log-messages.ts';
import { CheckpointSource } from './checkpoint.ts';
import { CpuClaimsSource } from './cpu-claims.ts';
import { type AnswerVerdict, PodResourcesSource } from './pod-resources-source.ts';
import { type AssignmentsView, type Inputs, nextView, type PodResourcesAnswer, UNKNOWN_VIEW } from './view.ts';

export interface AssignmentsDeps {
  readonly kubeletDir: string;
  readonly cdiDir: string;
  readonly online: () => CpuSet;
  readonly log: AgentLogger;
  readonly onFailure: (code: string) => void;
  /** The CPU manager policy of the kubelet's configuration, read where no checkpoint contains it. */
  readonly configuredPolicy?: () => Promise<string | undefined>;
  /** Calls the listener when a kubelet has started: the answers of the one before it no longer count. */
  readonly onKubelet?: (listener: () => void) => () => void;
  /** Seconds without a usable checkpoint after which the PodResources API alone decides what is free. Default 30. */
  readonly checkpointGrace?: number;
}

/** A kubelet rewrites its checkpoint when it starts, which takes a few seconds if it has no saved state. */
const CHECKPOINT_GRACE_SECONDS = 30;
/** Seconds after a change in which a kubelet that lists no pods may still be starting. */
const STARTING_SECONDS = 30;

const UNREAD: Omit<Inputs, 'online' | 'confirmed' | 'alone'> = {
  checkpoint: { value: undefined, problem: 'cpu_manager_state was not read yet' },
  podResources: { value: undefined, problem: 'the kubelet was not queried yet' },
  claims: { value: undefined, problem: 'the claims were not read yet' },
  configuredPolicy: undefined,
};

/**
 * Reads the sources of the view and says when it has changed: the checkpoint is fast and has uids, PodResources has the
 * names and is authoritative. It keeps the last reading of each source; see the sources for their owners, ages and ends.
 */
export class Assignments {
  readonly #deps: AssignmentsDeps;
  readonly #graceMilliseconds: number;
  /** `at`: when this process learned of the change, in monotonic milliseconds. */
  readonly #listeners = new Listeners<[AssignmentsView, number]>();
  /** `grace`: the checkpoint is unusable, and still counts; `alone`: it no longer does. */
  #mode: 'checkpoint' | 'grace' | 'alone' = 'checkpoint';
  #graceTimer: NodeJS.Timeout | undefined;
  #inputs = UNREAD;
  #view = UNKNOWN_VIEW;
  /** When the checkpoint was last read or a kubelet started, and when the last answered round began, in monotonic milliseconds. */
  #changedAt = 0;
  #queriedAt = 0;
  /** Since when the kubelet lists nothing while PodResources counts alone, in monotonic milliseconds. */
  #emptySince: number | undefined;
  #checkpoint: CheckpointSource | undefined;

  constructor(deps: AssignmentsDeps) {
    this.#deps = deps;
    this.#graceMilliseconds = (deps.checkpointGrace ?? CHECKPOINT_GRACE_SECONDS) * 1000;
  }

  readonly view = (): AssignmentsView => this.#view;

  readonly subscribe = this.#listeners.subscribe;

  /** The view after reading the checkpoint again: an event of its change may still be pending. */
  readonly readNow = (): AssignmentsView => {
    this.#checkpoint?.read();
    return this.#view;
  };

  async run(signal: AbortSignal): Promise<void> {
    const { kubeletDir, cdiDir, log, onFailure, onKubelet } = this.#deps;
    const client = createPodResourcesClient(join(kubeletDir, POD_RESOURCES_SOCKET));
    const guard = new Guard();
    const podsWithCpus = () => new Set(this.#inputs.checkpoint.value?.entries.map(({ podUID }) => podUID));
    const onPodResources = (reading: Inputs['podResources'], startedAt: number, isRepeated: boolean) => {
      const wasConfirmed = this.#queriedAt >= this.#changedAt;
      this.#queriedAt = startedAt;
      const believed = this.#believed(reading);
      // The same answer again tells no listener anything, and listeners have work to do.
      if (!isRepeated || !wasConfirmed || this.#emptySince !== undefined)
        this.#update({ podResources: believed }, performance.now());
      const isStarting = performance.now() - this.#changedAt < STARTING_SECONDS * 1000;
      return this.#mode === 'alone' ? 'poll' : verdictOn(reading.value, this.#view, isStarting);
    };
    const deps = { client, kubeletDir, podsWithCpus, log, onFailure, onReading: onPodResources };
    const source = new PodResourcesSource(deps, guard, signal);
    const onCheckpoint = (reading: Inputs['checkpoint'], at: number) => {
      this.#takeCheckpoint(reading, at, () => this.#standAlone(source, signal).catch(guard.fail));
      source.refresh();
    };
    const onClaims = (claims: Inputs['claims'], at: number) => {
      this.#update({ claims }, at);
      source.refresh();
    };
    const end = onKubelet?.(
      guard.wrap(() => {
        this.#changedAt = performance.now();
        this.#update({}, this.#changedAt);
        source.refresh();
      }),
    );
    try {
      source.follow();
      new CpuClaimsSource({ directory: cdiDir, log, onReading: onClaims }).follow(guard, signal);
      this.#checkpoint = new CheckpointSource({ directory: kubeletDir, log, onReading: onCheckpoint });
      this.#checkpoint.follow(guard, signal);
      await guard.until(signal);
    } finally {
      this.#checkpoint = undefined;
      this.#endGrace();
      end?.();
      client.close();
    }
  }

  /**
   * Without a checkpoint nothing contradicts a kubelet that has just started and lists no containers yet: the CPUs of the
   * last list stay owned until the list has been empty for as long as a kubelet may take.
   */
  #believed(reading: Inputs['podResources']): Inputs['podResources'] {
    const before = this.#inputs.podResources.value;
    const isEmpty = this.#mode === 'alone' && reading.value?.listed.length === 0 && (before?.listed.length ?? 0) > 0;
    if (!isEmpty) {
      this.#emptySince = undefined;
      return reading;
    }
    this.#emptySince ??= performance.now();
    if (performance.now() - this.#emptySince >= this.#graceMilliseconds) return reading;
    return { value: before, problem: 'the kubelet lists no containers any more: it may have just started' };
  }

  #update(change: Partial<Inputs>, at: number): void {
    this.#inputs = { ...this.#inputs, ...change };
    const confirmed = this.#queriedAt >= this.#changedAt;
    const inputs = { ...this.#inputs, online: this.#deps.online(), confirmed, alone: this.#mode === 'alone' };
    this.#view = nextView(this.#view, inputs);
    this.#listeners.notify(this.#view, at);
  }

  #takeCheckpoint(reading: Inputs['checkpoint'], at: number, onGraceEnd: () => void): void {
    this.#changedAt = performance.now();
    if (reading.problem === undefined) {
      this.#endGrace();
      this.#mode = 'checkpoint';
    } else if (this.#mode === 'checkpoint') {
      this.#mode = 'grace';
      this.#graceTimer = setTimeout(onGraceEnd, this.#graceMilliseconds);
    }
    this.#update({ checkpoint: reading }, at);
  }

  async #standAlone(source: PodResourcesSource, signal: AbortSignal): Promise<void> {
    const { kubeletDir, log, configuredPolicy } = this.#deps;
    log.warn({ kubeletDir }, 'cpu_manager_state unusable; using the PodResources API alone');
    const policy = await configuredPolicy?.();
    if (this.#mode !== 'grace' || signal.aborted) return;
    this.#mode = 'alone';
    this.#update({ configuredPolicy: policy }, performance.now());
    source.refresh();
  }

  #endGrace(): void {
    clearTimeout(this.#graceTimer);
    this.#graceTimer = undefined;
    // A restarted duty begins the time again.
    if (this.#mode === 'grace') this.#mode = 'checkpoint';
  }
}

/**
 * When to query the kubelet again. Changes of its files cause queries at once; see `PAUSES` for the others. A kubelet
 * that has just started lists no pods yet, and no file tells when it does.
 */
export function verdictOn(
  answer: PodResourcesAnswer | undefined,
  view: AssignmentsView,
  isStarting: boolean,
): AnswerVerdict {
  if (view.memory === undefined && isStarting) return 'soon';
  return view.problems.length === 0 || answer?.allocatable.isEmpty === false ? 'later' : 'soon';
}
