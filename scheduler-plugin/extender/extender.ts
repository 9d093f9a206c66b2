import type { Pod } from '../../kube/resources.ts';
import { ParseError, PlumblineError } from '../../model/errors.ts';
import { vmiNameOf } from '../../model/launcher/recognize.ts';
import { LOWEST_SCORE, type UnpredictablePolicy } from '../../model/placement/verdict.ts';
import {
  answerLimit,
  type Place,
  type PredictionBasis,
  reservationSeconds,
} from '../../model/reservations/reservation.ts';
import type { Reservations } from '../../model/reservations/reservations.ts';
import type { Cluster } from '../cluster/cluster.ts';
import type { ClusterState } from '../cluster/cluster-state.ts';
import { type ClusterNode, sharesCpusOn } from '../cluster/fleet.ts';
import type { NeedsReader, PodNeeds } from '../cluster/pod-needs.ts';
import type { Lookahead } from '../controllers/lookahead.ts';
import type { Recheck } from '../controllers/recheck.ts';
import type { DecisionLog, Decisions } from '../filter/decisions.ts';
import { Filter, type FilterAnswer, type FilterOutcome, Refusals } from '../filter/filter.ts';
import type { NodeVerdicts } from '../filter/node-verdicts.ts';
import type { SchedulerLeaseReplica } from '../replica/scheduler-lease.ts';
import type { ExtenderContext } from '../telemetry/context.ts';
import { type ExtenderArgs, isInGroup, softTopologyKeys, UnreadablePod, waitsToBind } from './args.ts';

/** The caches do not have the whole cluster, or the pods of another kube-scheduler, yet. */
export class NotNow extends Error {}

interface ExtenderOptions extends Pick<ExtenderContext, 'metrics' | 'nowSeconds'> {
  readonly state: ClusterState;
  readonly verdicts: NodeVerdicts;
  readonly lookahead: Pick<Lookahead, 'add' | 'settled'>;
  readonly recheck: Pick<Recheck, 'waits' | 'settled' | 'neverOffered'>;
  readonly reader: NeedsReader;
  readonly decisions: Decisions;
  readonly decisionLog: Pick<DecisionLog, 'waits'>;
  readonly unpredictable: UnpredictablePolicy;
  readonly cluster: Pick<Cluster, 'missing' | 'bindingsKnownUntil'>;
  readonly replica: Pick<SchedulerLeaseReplica, 'mayAnswer'>;
  /** Maximum nodes in an answer for a pod with exclusive CPUs. */
  readonly answers: number;
  /** Maximum seconds that a node stays reserved for a pod that is not bound. */
  readonly reservationTimeout: number;
}

export class Extender {
  readonly state: ClusterState;
  readonly #options: ExtenderOptions;
  readonly #filter: Filter;

  constructor(options: ExtenderOptions) {
    const { state, verdicts, unpredictable } = options;
    this.state = state;
    this.#options = options;
    this.#filter = new Filter(state.fleet, verdicts, unpredictable);
  }

  now(): number {
    return this.#options.nowSeconds();
  }

  /** @throws NotNow */
  assertActive(): void {
    this.#assertSynced();
    if (!this.#options.replica.mayAnswer())
      throw new NotNow('the pods that another kube-scheduler has bound are not read yet');
  }

  needsOf(pod: Pod): PodNeeds {
    return this.#options.reader.read(pod);
  }

  /** @param waiting number of other calls that wait for an answer @throws NotNow, ParseError */
  filter({ pod, names }: ExtenderArgs, waiting: number): FilterOutcome {
    this.assertActive();
    const needs = this.#readNeeds(pod);
    if (pod instanceof UnreadablePod) return refusedOnAll(names, pod.message);
    if (needs instanceof PlumblineError) return refusedOnAll(names, needs.message);
    const { cluster, verdicts, lookahead, answers, reservationTimeout } = this.#options;
    const { fleet, reservations } = this.state;
    const { uid } = needs.request;
    const { namespace = '', name, resourceVersion: version = '' } = pod.metadata;
    // A reservation whose pod may be bound since must not expire.
    reservations.expire(cluster.bindingsKnownUntil);
    if (needs.exclusive) assertRoomFor(reservations, namespace);
    reservations.withdraw(uid);
    const others = waiting + reservations.unbound;
    const waits = waitsToBind(pod);
    // Until the pod is bound, nothing may tell which of several nodes the scheduler has chosen.
    const takesOne = isInGroup(pod) || (waits && !reservations.nominatesChoice);
    const call = {
      needs,
      names,
      softKeys: takesOne ? [] : softTopologyKeys(pod),
      answersFor: (candidates: number) => answerLimit(answers, candidates, others),
    };
    const { result: predicted, notChecked } = verdicts.withinTime(names.length, () => this.#filter.filter(call));
    if (predicted.answers.length === 0 && notChecked.length > 0) {
      lookahead.add(needs, notChecked);
      throw new NotNow(`${notChecked.length} nodes were not checked in time; try again`);
    }
    lookahead.settled(needs);
    const isReserved = ({ node }: FilterAnswer) => takesCpusOn(fleet.get(node), needs);
    const outcome = takesOne ? withBestOf(predicted, isReserved) : predicted;
    if (needs.exclusive) {
      const places = new Map<string, Place>();
      for (const answer of outcome.answers.filter(isReserved))
        places.set(answer.node, { ...answer, basis: basisOf(fleet.get(answer.node)) });
      const expires = this.now() + reservationSeconds(waits, reservationTimeout);
      const hadNomination = pod.status?.nominatedNodeName !== undefined;
      reservations.reserve({ uid, namespace, name, pod: needs, places, version, expires, hadNomination });
    }
    this.#record(pod, needs, names, outcome);
    return outcome;
  }

  /** Of the nodes that passed, from 0 to 10; empty if no node is better than another. @throws NotNow, ParseError */
  prioritize({ pod, names }: ExtenderArgs): readonly { readonly Host: string; readonly Score: number }[] {
    this.assertActive();
    const { verdicts } = this.#options;
    const needs = this.#readNeeds(pod);
    if (needs instanceof PlumblineError || !needs.exclusive) return [];
    const reservation = this.state.reservations.of(needs.request.uid);
    const scoreOn = (name: string): number => {
      const scored = reservation?.places.get(name) ?? verdicts.verdict(needs, this.state.fleet.get(name));
      return 'score' in scored ? scored.score : LOWEST_SCORE;
    };
    const score = () => names.map((name) => ({ Host: name, Score: scoreOn(name) }));
    return verdicts.withinTime(names.length, score).result;
  }

  /** Without a reservation; each verdict is determined when it is called. @throws NotNow, ParseError */
  explain(pod: Pod, nodes?: readonly string[]) {
    this.#assertSynced();
    const { fleet, reservations } = this.state;
    const needs = this.needsOf(pod);
    const names = nodes ?? [...fleet.nodes()].map(({ name }) => name);
    return names.map((node) => () => {
      const verdict = this.#options.verdicts.verdict(needs, fleet.get(node));
      const inFlight = reservations.assumedOn(node, needs.request.uid);
      /** Pods in flight there, oldest first. */
      const assumed = inFlight.map(({ uid, kind, places }) => ({ uid, kind, cpus: places.get(node)?.cpus }));
      return { node, verdict, assumed };
    });
  }

  /** The error for a pod that exceeds a limit, or whose amounts or CPU mask are malformed. */
  #readNeeds(pod: ExtenderArgs['pod']): PodNeeds | PlumblineError {
    if (pod instanceof UnreadablePod) return pod;
    try {
      return this.needsOf(pod);
    } catch (error) {
      if (error instanceof ParseError) return error;
      throw error;
    }
  }

  #assertSynced(): void {
    const { missing } = this.#options.cluster;
    if (missing !== undefined) throw new NotNow(missing);
  }

  #record(pod: Pod, needs: PodNeeds, names: readonly string[], outcome: FilterOutcome): void {
    const { decisions, decisionLog, metrics, recheck, verdicts } = this.#options;
    const { uid } = needs.request;
    const { namespace = '', name = '' } = pod.metadata;
    decisions.add(`${namespace}/${name}`, uid, outcome);
    for (const { kind, nodes } of outcome.refusals.texts) metrics.refusals.inc({ reason: kind }, nodes);
    if (outcome.answers.length > 0) {
      recheck.settled(uid);
      return;
    }
    decisionLog.waits(`${namespace}/${name}`, uid, outcome.refusals, vmiNameOf(pod));
    recheck.waits(needs);
    const missed = verdicts.withinTime(0, () => this.#filter.missed(needs, names)).result;
    // Attempts until a scheduler that offers this many nodes at a time has offered each node.
    const rounds = Math.ceil(this.state.fleet.size / Math.max(1, outcome.offered));
    if (missed !== undefined) recheck.neverOffered(needs, missed, rounds);
  }
}

/** Maximum reservations of unbound pods at a time, of all namespaces and of one: more than a scheduler has in flight. */
const MAX_RESERVATIONS = 10_000;
const MAX_RESERVATIONS_OF_NAMESPACE = 1000;

function takesCpusOn(node: ClusterNode | undefined, needs: PodNeeds): boolean {
  return needs.exclusive && node !== undefined && !sharesCpusOn(node, needs);
}

/** Undefined if a pod is in flight there. */
function basisOf(node: ClusterNode | undefined): PredictionBasis | undefined {
  if (node?.shape === undefined || node.reservations > 0) return undefined;
  const { shape, assignments, usage } = node;
  return { shape, assignments, usage };
}

function assertRoomFor(reservations: Reservations<PodNeeds>, namespace: string): void {
  if (reservations.unbound >= MAX_RESERVATIONS) throw new NotNow('too many pods are in flight; try again');
  if (reservations.unboundIn(namespace) >= MAX_RESERVATIONS_OF_NAMESPACE)
    throw new NotNow('too many pods of this namespace are in flight; try again');
}

/** An error would be retried for ever, and each attempt delays the pods of others. */
function refusedOnAll(names: readonly string[], text: string): FilterOutcome {
  const refusals = new Refusals();
  for (const name of names) refusals.add(name, { kind: 'other', text });
  return { offered: names.length, answers: [], refusals };
}

function withBestOf(outcome: FilterOutcome, isReserved: (answer: FilterAnswer) => boolean): FilterOutcome {
  const [best] = outcome.answers.filter(isReserved).sort((a, b) => b.score - a.score);
  return { ...outcome, answers: outcome.answers.filter((answer) => answer === best || !isReserved(answer)) };
}
