import { askedMultiples } from '../../model/launcher/node-kind.ts';
import { decideOrdinary, type OrdinaryAlignment } from '../../model/launcher/ordinary.ts';
import { beforeSmtAffinity, smtAffinity } from '../../model/launcher/smt-affinity.ts';
import { DECISION_ANNOTATION, PLACED_RESOURCE, PLACEMENT_ANNOTATION } from '../../model/names.ts';
import { decisionText, type PodDecision, placementText, type Refusal, sorted } from './decision.ts';
import type { DecideOptions } from './launcher.ts';
import { ownerNetworks } from './networks.ts';
import { reachOf } from './oversized.ts';
import type { ContainerChange } from './patch.ts';
import type { AdmittedPod } from './read-pod.ts';
import { reservedRequest } from './reserved.ts';

/**
 * Decides everything about an ordinary pod that asked for whole cores by annotation, or undefined if it did not ask.
 * Its first container with exclusive CPUs gets the devices: those of its networks, and the one that has the extender
 * look at the pod.
 * @throws ParseError if an amount or annotation is malformed
 */
export async function decideOrdinaryPod(
  pod: AdmittedPod,
  namespace: string,
  options: DecideOptions,
): Promise<PodDecision | undefined> {
  const { view, fetchNad, policy } = options;
  const free = beforeSmtAffinity(pod.spec);
  const candidates = view.candidates(free);
  const alignment = decideOrdinary(pod, askedMultiples(candidates), policy);
  if (alignment === undefined) return undefined;
  const { containers, threadsPerCore, refusals } = alignment;
  const exclusive = containers.length > 0 && refusals.length === 0;
  const networks = await ownerNetworks({ namespace, pod, exclusive }, view, fetchNad);
  const cpus = containers.map(({ to }) => to);
  const nodes = exclusive ? smtAffinity({ cpus, candidates, reported: view.nodeKinds() }) : undefined;
  const resources = exclusive ? [PLACED_RESOURCE, ...networks.resources] : [];
  const bearer = bearerOf(alignment);
  const changes = containers.map(
    (one): ContainerChange => ({
      list: one.list,
      index: one.index,
      cpus: one.to === one.cpus ? undefined : one.to,
      resources: one === bearer ? resources : [],
    }),
  );
  const text = decisionText({
    cpus: Object.fromEntries(exclusive ? containers.map(({ name, to }) => [name, to]) : []),
    threadsPerCore,
    padding: 0,
    networks: networks.held,
    resources,
    nodes,
  });
  const foreign = reservedRequest(pod, bearer, [PLACED_RESOURCE, ...networks.mayHave]);
  const lasting = containers.filter(({ list }) => list === 'containers').reduce((sum, { to }) => sum + to, 0);
  const guest = { cpus: exclusive ? lasting : 0, spansCells: false };
  const reach = reachOf(networks.held, guest, free, options);
  const { notes, others } = sorted(alignment.warnings);
  return {
    change: {
      containers: exclusive ? changes : [],
      annotations: {
        [DECISION_ANNOTATION]: text,
        [PLACEMENT_ANNOTATION]: placementText(
          { preferred: networks.preferred, spansCells: false, interfaces: networks.interfaces },
          networks.resources,
        ),
      },
      nodes,
    },
    // Whoever creates such a pod reads its warnings, and the annotation says the rest: there is nobody else to tell.
    done: [],
    notes,
    warnings: [...others.map(({ message }) => message), ...networks.warnings, ...reach.warnings],
    refusals: [
      ...refusals.map(({ message }): Refusal => ({ code: 422, message })),
      ...(reach.refusal === undefined ? [] : [{ code: 422, message: reach.refusal }]),
      ...(foreign === undefined ? [] : [{ code: 403, message: foreign }]),
    ],
  };
}

/** A container that runs on, where there is one: an init container is gone when the networks are in use. */
function bearerOf({ containers }: OrdinaryAlignment) {
  return containers.find(({ list }) => list === 'containers') ?? containers[0];
}
