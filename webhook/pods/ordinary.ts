import { askedMultiples } from '../../model/launcher/node-kind.ts';
import { decideOrdinary, type OrdinaryAlignment } from '../../model/launcher/ordinary.ts';
import { beforeSmtAffinity, smtAffinity } from '../../model/launcher/smt-affinity.ts';
import { DECISION_ANNOTATION, PLACED_RESOURCE, PLACEMENT_ANNOTATION } from '../../model/names.ts';
import { apartFinding } from '../../model/networks/common-cell.ts';
import { decisionText, type PodDecision, placementText, type Refusal, sorted } from './decision.ts';
import type { DecideOptions } from './launcher.ts';
import { ownerNetworks } from './networks.ts';
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
  { view, fetchNad, policy }: DecideOptions,
): Promise<PodDecision | undefined> {
  const candidates = view.candidates(beforeSmtAffinity(pod.spec));
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
  const apart = exclusive
    ? apartFinding(
        networks.held,
        candidates.map((kind) => kind.networks),
      )
    : undefined;
  const { notes, others } = sorted(alignment.warnings);
  return {
    change: {
      containers: exclusive ? changes : [],
      annotations: {
        [DECISION_ANNOTATION]: text,
        [PLACEMENT_ANNOTATION]: placementText({ preferred: networks.preferred, spansCells: false }, resources),
      },
      nodes,
    },
    // Whoever creates such a pod reads its warnings, and the annotation says the rest: there is nobody else to tell.
    done: [],
    notes,
    warnings: [...others.map(({ message }) => message), ...networks.warnings, ...(apart === undefined ? [] : [apart])],
    refusals: [
      ...refusals.map(({ message }): Refusal => ({ code: 422, message })),
      ...(foreign === undefined ? [] : [{ code: 403, message: foreign }]),
    ],
  };
}

/** A container that runs on, where there is one: an init container is gone when the networks are in use. */
function bearerOf({ containers }: OrdinaryAlignment) {
  return containers.find(({ list }) => list === 'containers') ?? containers[0];
}
