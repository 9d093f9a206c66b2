import { EVEN_PARITY_ANNOTATION } from '../../../model/launcher/cpus.ts';
import { FINAL_WEBHOOK, LAUNCHER_WEBHOOK } from '../../../model/names.ts';
import type { Facts } from '../facts/facts.ts';
import type { KubeVirt, WebhookConfiguration } from '../facts/objects.ts';
import { APPLY } from './finding.ts';
import type { Notebook } from './notebook.ts';

const GATE = 'AlignCPUs';
/** The webhooks that must receive every launcher with KubeVirt's annotation. */
const PODS = [LAUNCHER_WEBHOOK, FINAL_WEBHOOK];

/**
 * KubeVirt's own padding to an even number: its feature gate and its annotation on the KubeVirt object only work together,
 * and the webhook must receive the launchers that they opt in.
 */
export function checkAlignCpus(notes: Notebook, { kubevirts, mutating, validating }: Facts): void {
  for (const one of notes.value(kubevirts, 'KubeVirt objects') ?? []) {
    const gate = featureGates(one).includes(GATE);
    const annotated = one.metadata.annotations?.[EVEN_PARITY_ANNOTATION] !== undefined;
    const name = `kubevirt/${one.metadata.name ?? ''}`;
    if (gate && annotated) checkSent(notes, [...(mutating.value ?? []), ...(validating.value ?? [])]);
    else if (annotated) {
      notes.warning(
        `${name} has the annotation ${EVEN_PARITY_ANNOTATION} without the feature gate ${GATE}`,
        'KubeVirt ignores the annotation: it pads no VM, and no VM opts in to whole cores through it',
        `add ${GATE} to its featureGates, or annotate the VMs: docs/get-started/align-cpus.md`,
        { objects: [name] },
      );
    } else if (gate) {
      notes.warning(
        `${name} has the feature gate ${GATE} without the annotation ${EVEN_PARITY_ANNOTATION}`,
        'the gate alone has no effect: KubeVirt pads no VM, and no VM opts in to whole cores through it',
        'add the annotation to it, or annotate the VMs: docs/get-started/align-cpus.md',
        { objects: [name] },
      );
    }
  }
}

function checkSent(notes: Notebook, configurations: readonly WebhookConfiguration[]): void {
  const blind = configurations
    .flatMap(({ webhooks }) => webhooks)
    .filter(({ name, matchConditions }) => PODS.includes(name) && isBlind(matchConditions ?? []));
  if (blind.length === 0) {
    notes.seen(`KubeVirt’s ${GATE} is on: every VM with isolateEmulatorThread opts in`);
    return;
  }
  notes.error(
    `${blind.map(({ name }) => name).join(' and ')} ignores launchers with ${EVEN_PARITY_ANNOTATION}`,
    `KubeVirt’s ${GATE} is on, so these launchers opt in to whole cores, but are only padded to an even number`,
    APPLY,
  );
}

/** A condition that tests annotations but not KubeVirt's. A condition on CPUs alone matches all launchers. */
function isBlind(conditions: readonly { readonly expression: string }[]): boolean {
  return conditions.some(
    ({ expression }) =>
      expression.includes('annotations') &&
      !expression.includes(EVEN_PARITY_ANNOTATION) &&
      !expression.includes("c.name == 'compute'"),
  );
}

function featureGates({ spec }: KubeVirt): readonly string[] {
  return spec?.configuration?.developerConfiguration?.featureGates ?? [];
}
