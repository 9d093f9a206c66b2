import type { Pod } from '../../kube/resources.ts';
import type { CpuSet } from '../../model/cpu-set.ts';
import { LOWEST, type NodeVerdict, refuse, type UnpredictablePolicy } from '../../model/placement/verdict.ts';
import { answerLimit } from '../../model/reservations/answer-limit.ts';
import { reservationSeconds } from '../../model/reservations/duration.ts';
import type { Place } from '../../model/reservations/reservation.ts';
import { type ClusterNode, sharesCpusOn } from '../cluster/cluster-node.ts';
import type { ClusterState } from '../cluster/cluster-state.ts';
import type { DpuHealth } from '../cluster/dpu-health.ts';
import type { NeedsReader, PodNeeds } from '../cluster/pod-needs.ts';
import { ownerOf } from '../cluster/pod-view.ts';
import type { Recheck } from '../controllers/recheck.ts';
import type { Decisions } from '../filter/decisions.ts';
import { dpuRefusal } from '../filter/dpu-text.ts';
import { Filter, type FilterOutcome } from '../filter/filter.ts';
import { NodeVerdicts } from '../filter/node-verdicts.ts';
import { createPredictions } from '../filter/prediction-cache.ts';
import type { ExtenderMetrics } from '../telemetry/metrics.ts';
import { type ExtenderArgs, softTopologyKeys, waitsToBind } from './args.ts';

/** No verdict is possible now: the caches do not have the whole cluster, or the pods of another kube-scheduler, yet. */
export class NotNow extends Error {}

export interface Extender {
  readonly state: ClusterState;
  /** @param waiting number of other calls that wait for an answer @throws NotNow, ParseError */
  filter(args: ExtenderArgs, waiting: number): FilterOutcome;
  /**
   * Called for the nodes that passed. Empty if no node is better than another, as for a pod without CPUs of its own:
   * the scheduler scores a node without a score as 0. @throws NotNow, ParseError
   */
  prioritize(args: ExtenderArgs): readonly HostPriority[];
  /** The verdict on each of the given nodes, or on all, without a reservation. @throws NotNow, ParseError */
  explain(pod: Pod, nodes?: readonly string[]): readonly NodeExplanation[];
  needsOf(pod: Pod): PodNeeds;
  /** Whether a node would accept a pod with these needs now. */
  wouldFit(needs: PodNeeds, node: string): boolean;
  /** @throws NotNow */
  assertActive(): void;
}

export interface NodeExplanation {
  readonly node: string;
  readonly verdict: NodeVerdict;
  /** Pods in flight there, oldest first. */
  readonly assumed: readonly { readonly uid: string; readonly kind: string; readonly cpus: CpuSet | undefined }[];
}

export interface ExtenderOptions {
  readonly state: ClusterState;
  readonly dpuHealth: Pick<DpuHealth, 'verdict'>;
  readonly recheck: Pick<Recheck, 'waits' | 'settled' | 'neverOffered'>;
  readonly reader: NeedsReader;
  readonly decisions: Decisions;
  readonly unpredictable: UnpredictablePolicy;
  readonly metrics: ExtenderMetrics;
  /** Why no verdict is possible, or undefined. */
  readonly notSynced: () => string | undefined;
  /** Whether this replica may give verdicts. */
  readonly mayAnswer: () => boolean;
  /** Monotonic seconds. */
  readonly now: () => number;
  /** Until when bindings are known: a reservation whose pod may be bound since must not expire. */
  readonly podsSeenUntil: () => number;
  /** Maximum nodes in an answer for a pod with exclusive CPUs. */
  readonly answers: number;
  /** Maximum seconds that a node stays reserved for a pod that is not bound. */
  readonly reservationTimeout: number;
}

/** Determines whether a verdict may be given. */
function gateOf(notSynced: () => string | undefined, mayAnswer: () => boolean) {
  const assertSynced = () => {
    const missing = notSynced();
    if (missing !== undefined) throw new NotNow(missing);
  };
  return {
    assertSynced,
    assertActive() {
      assertSynced();
      if (!mayAnswer()) throw new NotNow('the pods that another kube-scheduler has bound are not read yet');
    },
  };
}

/** A score of a node in the answer to a prioritize call. */
export interface HostPriority {
  readonly Host: string;
  /** An integer from 0 to 10: the scheduler rejects the whole reply if it contains a fraction. */
  readonly Score: number;
}

/** Answers the scheduler's calls from the state of the cluster, and reserves the nodes of its answers. */
export function createExtender(options: ExtenderOptions): Extender {
  const { state, dpuHealth, recheck, reader, decisions, unpredictable, metrics, notSynced, mayAnswer, now } = options;
  const { fleet, reservations, hostRefusals, ownerBackoff, owners } = state;

  const assumedNeeds = ({ name }: ClusterNode, needs: PodNeeds): PodNeeds[] =>
    reservations.assumedOn(name, needs.request.uid).map(({ pod }) => pod);
  const verdicts = new NodeVerdicts(
    fleet,
    {
      judge: createPredictions(fleet, unpredictable, assumedNeeds, (node) => state.lostPlaces.goneFrom(node)),
      assumedNeeds,
      dpuRefusal: ({ name }) => dpuRefusal(dpuHealth.verdict(name)),
      refusedOnHost: ({ name }, needs) => hostRefusals.has(name, needs.key),
    },
    unpredictable,
  );
  const filter = new Filter(fleet, verdicts, unpredictable);

  const { assertSynced, assertActive } = gateOf(notSynced, mayAnswer);

  /** Why an owner's pods are held back. It omits the seconds, since the scheduler counts nodes by text. */
  const backingOff = (pod: Pod): string | undefined => {
    const controller = ownerOf(pod);
    if (controller === undefined) return undefined;
    const { key, owner } = owners.makerOf(pod.metadata.namespace ?? '', controller);
    if (ownerBackoff.secondsLeft(key, now()) === 0) return undefined;
    return `delayed: kubelets refused the last pods of ${owner.kind} ${owner.name}`;
  };

  const record = (pod: Pod, needs: PodNeeds, names: readonly string[], outcome: FilterOutcome): void => {
    const { uid } = needs.request;
    decisions.add(`${pod.metadata.namespace ?? ''}/${pod.metadata.name ?? ''}`, uid, outcome);
    for (const { kind, nodes } of outcome.refusals.texts) metrics.refusals.inc({ reason: kind }, nodes);
    if (outcome.answers.length > 0) {
      recheck.settled(uid);
      return;
    }
    recheck.waits(uid, needs);
    const missed = backingOff(pod) === undefined ? filter.missed(needs, names) : undefined;
    if (missed !== undefined) recheck.neverOffered(uid, needs, missed, roundsOver(fleet.size, outcome.offered));
  };

  return {
    state,
    assertActive,
    needsOf: (pod) => reader.read(pod),
    wouldFit: (needs, name) => {
      const node = fleet.get(name);
      return node?.exists === true && verdicts.verdict(needs, node).fits;
    },

    filter({ pod, names }, waiting) {
      assertActive();
      const needs = reader.read(pod);
      const { uid } = needs.request;
      reservations.expire(options.podsSeenUntil());
      if (needs.exclusive && reservations.unbound >= MAX_RESERVATIONS)
        throw new NotNow('too many pods are in flight; try again');
      reservations.withdraw(uid);
      const others = waiting + reservations.unbound;
      const outcome = filter.filter({
        needs,
        names,
        softKeys: softTopologyKeys(pod),
        backingOff: backingOff(pod),
        answersFor: (candidates) => answerLimit(options.answers, candidates, others),
      });
      if (needs.exclusive) {
        const places = new Map<string, Place>();
        for (const answer of outcome.answers) {
          const node = fleet.get(answer.node);
          if (node !== undefined && !sharesCpusOn(node, needs)) places.set(answer.node, answer);
        }
        const expires = now() + reservationSeconds(waitsToBind(pod), options.reservationTimeout);
        reservations.reserve({ uid, pod: needs, places, version: pod.metadata.resourceVersion ?? '', expires });
      }
      record(pod, needs, names, outcome);
      return outcome;
    },

    prioritize({ pod, names }) {
      assertActive();
      const needs = reader.read(pod);
      if (!needs.exclusive) return [];
      const reservation = reservations.of(needs.request.uid);
      return names.map((name) => {
        const place = reservation?.places.get(name);
        if (place !== undefined) return { Host: name, Score: place.score };
        const verdict = verdicts.verdict(needs, fleet.get(name));
        return { Host: name, Score: verdict.fits ? verdict.score : LOWEST };
      });
    },

    explain(pod, nodes) {
      assertSynced();
      const needs = reader.read(pod);
      const delayed = backingOff(pod);
      const names = nodes ?? [...fleet.nodes()].map(({ name }) => name);
      return names.map((node) => ({
        node,
        verdict: delayed === undefined ? verdicts.verdict(needs, fleet.get(node)) : refuse('owner-backoff', delayed),
        assumed: reservations.assumedOn(node, needs.request.uid).map(({ uid, kind, places }) => ({
          uid,
          kind,
          cpus: places.get(node)?.cpus,
        })),
      }));
    },
  };
}

/** Maximum reservations at a time: more than a scheduler has pods in flight. */
const MAX_RESERVATIONS = 10_000;

/** Attempts until a scheduler that offers this many nodes at a time has offered each node. */
function roundsOver(nodes: number, offered: number): number {
  return Math.ceil(nodes / Math.max(1, offered));
}
