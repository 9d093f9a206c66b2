import { kubectl } from '../../../diagnosis/remedies.ts';
import { countText } from '../../../model/amounts.ts';
import { EVEN_PARITY_ANNOTATION } from '../../../model/launcher/cpus.ts';
import { FINAL_WEBHOOK, LAUNCHER_WEBHOOK, NAMESPACE, WEBHOOK, WEBHOOK_REQUIRED } from '../../../model/names.ts';
import { oneLine } from '../../support/errors.ts';
import { featureGates, isGated, type WebhookConfiguration } from '../../support/objects.ts';
import { someNames } from '../../support/terminal.ts';
import type { DoctorFacts } from '../facts/facts.ts';
import { RENEW } from './certificates.ts';
import { type AreaRecorder, areaCheck, BREAK_GLASS, fix, inSystem } from './finding.ts';
import { applyAgain } from './installed.ts';

type Webhook = WebhookConfiguration['webhooks'][number];

const isOurs = ({ metadata }: WebhookConfiguration) => metadata.name?.startsWith('plumbline-') === true;

const AS_WITHOUT =
  'VMs start as without Plumbline: no padding, no alignment with networks, no pinning before the guest runs';

export const checkWebhook = areaCheck('webhook', (recorder, facts: DoctorFacts) => {
  const { mutating, validating, endpoints } = facts;
  const mutators = recorder.value(mutating, 'MutatingWebhookConfigurations') ?? [];
  const validators = recorder.value(validating, 'ValidatingWebhookConfigurations') ?? [];
  const ourConfiguration = mutators.find(({ metadata }) => metadata.name === WEBHOOK);
  const launcher = ourConfiguration?.webhooks.find(({ name }) => name === LAUNCHER_WEBHOOK);
  for (const { webhooks } of [...mutators, ...validators].filter(isOurs)) {
    for (const webhook of webhooks) checkOne(recorder, webhook);
  }
  if (ourConfiguration && launcher) checkOrder(recorder, facts, launcher);
  const slices = recorder.value(endpoints, `EndpointSlices of ${NAMESPACE}`);
  const serving = slices?.filter(({ metadata }) => metadata.labels?.['kubernetes.io/service-name'] === WEBHOOK) ?? [];
  const ready = serving.flatMap((slice) => slice.endpoints).filter(({ conditions }) => conditions?.ready !== false);
  const called = checkRequired(recorder, facts, launcher, ready.length);
  if (ourConfiguration && serving.length > 0 && ready.length === 0) {
    recorder.error(
      `no replica of ${WEBHOOK} is ready`,
      called ? 'the API server cannot create launchers that use Plumbline: the webhook does not answer' : AS_WITHOUT,
      fix('find out why', inSystem('get', 'pods'), inSystem('logs', `deploy/${WEBHOOK}`)),
      { cause: 'webhook-away', ...(called && { meanwhile: BREAK_GLASS }) },
    );
  } else if (ready.length > 0) recorder.checked(`${countText(ready.length, 'replica')} ready`);
  if (launcher && called) checkReview(recorder, facts);
  checkAlignCpus(recorder, facts);
});

/** The API server has just called it, over the network and with the certificate that it presents. */
function checkReview(recorder: AreaRecorder, { review }: DoctorFacts): void {
  if (review.result === 'reviewed') recorder.checked('the API server gets an answer for a new launcher (dry run)');
  else if (review.result === 'refused') recorder.notChecked(`a dry run of a launcher (${oneLine(review.why)})`);
  else {
    const { webhook, why } = review;
    const hangs = /deadline exceeded|timeout|timed out/i.test(why);
    const todo = hangs
      ? fix('restart its pods if they hang', inSystem('rollout', 'restart', `deployment/${WEBHOOK}`))
      : fix('find out why', inSystem('get', 'pods', '-o', 'wide'), inSystem('logs', `deploy/${WEBHOOK}`));
    const cause = /x509|certificate/i.test(why) ? 'certificate' : 'webhook-away';
    recorder.error(
      `the API server calls webhook ${webhook} without success: ${oneLine(why)}`,
      'it cannot create launchers that use Plumbline',
      cause === 'certificate' ? RENEW : todo,
      { cause, meanwhile: BREAK_GLASS },
    );
  }
}

/** Whether the API server calls the webhook. @param ready replicas */
function checkRequired(recorder: AreaRecorder, facts: DoctorFacts, launcher: Webhook | undefined, ready: number) {
  const { webhookRequired } = facts;
  if (launcher === undefined || !isGated(launcher)) return true;
  const logs = inSystem('logs', `deploy/${WEBHOOK}`);
  if (webhookRequired.missing === 'absent') {
    const { text, commands } = applyAgain(facts);
    const switchedOn = fix(`${text} once the webhook works; it switches itself on`, logs, ...commands);
    const fault = `the webhooks are switched off: there is no RoleBinding ${WEBHOOK_REQUIRED} in ${NAMESPACE}`;
    recorder.warning(fault, AS_WITHOUT, switchedOn);
    return false;
  }
  const subjects = recorder.value(webhookRequired, `RoleBinding ${WEBHOOK_REQUIRED}`)?.subjects;
  if (subjects === undefined || subjects.some(({ name }) => name === WEBHOOK)) return true;
  const what = `the webhooks are not switched on: the API server has not reached ${WEBHOOK} yet`;
  if (ready > 0) recorder.error(what, AS_WITHOUT, fix('find out what it waits for', logs), { cause: 'webhook-away' });
  return false;
}

function checkOne(recorder: AreaRecorder, { name, clientConfig, failurePolicy }: Webhook): void {
  if (!clientConfig.caBundle) {
    recorder.error(
      `webhook ${name} has no CA bundle`,
      'the API server cannot verify the webhook’s certificate, so every call fails',
      fix('check whether cert-manager and its cainjector run', kubectl('-n', 'cert-manager', 'get', 'pods')),
      { cause: 'certificate' },
    );
  }
  if (name === LAUNCHER_WEBHOOK && failurePolicy === 'Ignore') {
    recorder.warning(
      `webhook ${name} has failurePolicy Ignore`,
      'while it is down, launchers are not padded; they then stay pending, as no full-pcpus-only node may take them',
      'set failurePolicy: Fail, as in the manifests: KubeVirt retries by itself',
    );
  }
}

/** The API server calls them in the order of names: a later one may add a sidecar that costs the exclusive CPUs. */
function checkOrder(recorder: AreaRecorder, facts: DoctorFacts, launcher: Webhook): void {
  const validators = facts.validating.value ?? [];
  const later = (facts.mutating.value ?? []).filter(
    (configuration) =>
      !isOurs(configuration) &&
      (configuration.metadata.name ?? '') > WEBHOOK &&
      configuration.webhooks.some(seesNewPods),
  );
  if (later.length === 0) {
    recorder.checked('no other webhook changes pods after it');
    return;
  }
  const names = later.map(({ metadata }) => metadata.name ?? '');
  const caught = validators.some(({ webhooks }) => webhooks.some(({ name }) => name === FINAL_WEBHOOK));
  if (launcher.reinvocationPolicy !== 'IfNeeded') {
    recorder.warning(
      `${someNames(names)} change pods after ${WEBHOOK}, which is not called again`,
      'a container that they add may cost a launcher its dedicated CPUs or its whole cores',
      'set reinvocationPolicy: IfNeeded on launcher.plumbline.dev, as in the manifests',
    );
  } else if (!caught) {
    recorder.warning(
      `${someNames(names)} change pods after ${WEBHOOK}, and final.plumbline.dev is missing`,
      'only the kubelet notices if they break a launcher',
      applyAgain(facts),
    );
  } else recorder.checked(`${someNames(names)} change pods later; final.plumbline.dev checks the result`);
}

function seesNewPods({ rules }: Webhook): boolean {
  return (rules ?? []).some(
    ({ resources, operations }) =>
      (resources ?? []).some((resource) => resource === 'pods' || resource === '*' || resource === '*/*') &&
      (operations ?? []).some((operation) => operation === 'CREATE' || operation === '*'),
  );
}

const GATE = 'AlignCPUs';
const WITHOUT_PADDING = 'KubeVirt pads no VM, and no VM opts in to whole cores through it';
const ANNOTATE = 'annotate the VMs: docs/get-started/migration.md#from-aligncpus';
const PODS = [LAUNCHER_WEBHOOK, FINAL_WEBHOOK];

/** KubeVirt's own padding: its gate and its annotation only work together, and the webhook must get these launchers. */
function checkAlignCpus(recorder: AreaRecorder, facts: DoctorFacts): void {
  for (const kubevirt of recorder.value(facts.kubevirts, 'KubeVirt objects') ?? []) {
    const gate = featureGates(kubevirt).includes(GATE);
    const annotated = kubevirt.metadata.annotations?.[EVEN_PARITY_ANNOTATION] !== undefined;
    const name = `kubevirt/${kubevirt.metadata.name ?? ''}`;
    if (gate && annotated) checkSent(recorder, facts);
    else if (annotated) {
      recorder.warning(
        `${name} has the annotation ${EVEN_PARITY_ANNOTATION} without the feature gate ${GATE}`,
        `KubeVirt ignores the annotation: ${WITHOUT_PADDING}`,
        `add ${GATE} to its featureGates, or ${ANNOTATE}`,
        { objects: [name] },
      );
    } else if (gate) {
      recorder.warning(
        `${name} has the feature gate ${GATE} without the annotation ${EVEN_PARITY_ANNOTATION}`,
        `the gate alone has no effect: ${WITHOUT_PADDING}`,
        `add the annotation to it, or ${ANNOTATE}`,
        { objects: [name] },
      );
    }
  }
}

function checkSent(recorder: AreaRecorder, facts: DoctorFacts): void {
  const blind = [...(facts.mutating.value ?? []), ...(facts.validating.value ?? [])]
    .flatMap(({ webhooks }) => webhooks)
    .filter(({ name, matchConditions }) => PODS.includes(name) && isBlind(matchConditions ?? []));
  if (blind.length === 0) {
    recorder.checked(`KubeVirt’s ${GATE} is on: every VM with isolateEmulatorThread opts in`);
    return;
  }
  recorder.error(
    `${blind.map(({ name }) => name).join(' and ')} ignores launchers with ${EVEN_PARITY_ANNOTATION}`,
    `KubeVirt’s ${GATE} is on, so these launchers opt in to whole cores, but are only padded to an even number`,
    applyAgain(facts),
  );
}

function isBlind(conditions: readonly { readonly expression: string }[]): boolean {
  return conditions.some(
    ({ expression }) =>
      expression.includes('annotations') &&
      !expression.includes(EVEN_PARITY_ANNOTATION) &&
      !expression.includes("c.name == 'compute'"),
  );
}
