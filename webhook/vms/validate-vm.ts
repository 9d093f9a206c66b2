import type { SchedulerFacts, Settings } from '../../model/admission/facts.ts';
import { podNetworks, reachFindings } from '../../model/admission/networks.ts';
import { schedulerWarnings } from '../../model/admission/scheduling.ts';
import { briefMask } from '../../model/cpu-mask/mask.ts';
import { PlumblineError } from '../../model/errors.ts';
import { isObject } from '../../model/json.ts';
import { hasAsked } from '../../model/launcher/annotation.ts';
import { launcherCpus } from '../../model/launcher/cpus.ts';
import { maskRequestKey, maskRequestOf } from '../../model/launcher/mask-request.ts';
import { selectionKey } from '../../model/launcher/node-selection.ts';
import {
  checkTemplate,
  misplacedAnnotations,
  rejectionWarning,
  threadsWarning,
  unknownAnnotations,
} from '../../model/launcher/template.ts';
import { CPU_MASK_ANNOTATION, FIX_CPU_MISMATCH_ANNOTATION } from '../../model/names.ts';
import { fitMask } from '../../model/placement/mask-fit.ts';
import { type ClusterFactsOptions, gatherCluster } from '../cluster/cluster-facts.ts';
import type { ClusterView } from '../cluster/cluster-view.ts';
import { type AdmissionAnswer, type AdmissionRequest, type Review, refused } from '../review/admission-review.ts';
import { type ReadTemplate, readTemplate } from './vm-template.ts';

interface VmValidationOptions extends Settings, ClusterFactsOptions {
  readonly route: Pick<SchedulerFacts, 'schedulerName'>;
}

/** Users see warnings here, not those about a launcher. An object that cannot be parsed is admitted with a warning. */
export function createVmValidation(options: VmValidationOptions): Review {
  return async (request) => {
    if (request.operation !== 'CREATE' && request.operation !== 'UPDATE') return { allowed: true };
    if (request.subResource !== undefined && request.subResource !== '') return { allowed: true };
    const current = readTemplate(request.kind.kind, request.object);
    if (current === undefined) return { allowed: true };
    if (typeof current === 'string')
      return { allowed: true, warnings: [`plumbline could not read this object and has not checked it: ${current}`] };
    // An update of an object that is being deleted only removes finalizers.
    if (current.outer.deletionTimestamp !== undefined) return { allowed: true };
    try {
      return await validate(request, current, options);
    } catch (error) {
      if (error instanceof PlumblineError) return refused(400, error.message);
      throw error;
    }
  };
}

async function validate(
  request: AdmissionRequest,
  current: ReadTemplate,
  options: VmValidationOptions,
): Promise<AdmissionAnswer> {
  const old = request.operation === 'UPDATE' ? readTemplate(request.kind.kind, request.oldObject) : undefined;
  const previous = typeof old === 'object' ? old : undefined;
  // Controllers write VMIs all the time. Parts that they do not change were reviewed before.
  const namesBefore = annotationNames(request.oldObject, current.path);
  const names = annotationNames(request.object, current.path).filter((name) => !namesBefore.includes(name));
  const unknown = unknownAnnotations(names);
  if (previous !== undefined && unknown.length === 0 && checkedFields(previous) === checkedFields(current))
    return { allowed: true };
  const instance = current.path === undefined;
  const { refusals, warnings } = checkTemplate(current, previous && { previous, instance }, options.gate);
  if (refusals.length > 0) {
    if (previous !== undefined && instance && isKubeVirtController(request))
      return { allowed: true, warnings: refusals };
    return refused(422, refusals.join('; '), warnings);
  }
  const { outer, metadata, path, spec } = current;
  const misplaced = path === undefined ? [] : misplacedAnnotations(outer, metadata, path);
  const namespace = request.namespace ?? outer.namespace ?? 'default';
  const aboutMask = [...hostWarnings(current, previous, options.view), ...runningWarnings(current, previous)];
  const aboutNetworks = await reviewNetworks(namespace, current, previous, options);
  if (aboutNetworks.refusal !== undefined) return refused(422, aboutNetworks.refusal, warnings);
  const candidates = options.view.candidates(spec);
  const aboutNodes = [rejectionWarning(current, candidates, options), threadsWarning(current, candidates)];
  const aboutScheduler = aboutSchedulerOf(current, previous, options.route.schedulerName);
  const before = [...warnings, ...unknown, ...misplaced, ...aboutMask, ...aboutNodes.flatMap((text) => text ?? [])];
  return { allowed: true, warnings: [...before, ...aboutNetworks.warnings, ...aboutScheduler] };
}

/** Of the object and its template as they were sent: the schemas drop annotations that Plumbline does not read. */
function annotationNames(object: unknown, path = ''): string[] {
  const within = (value: unknown, field: string) => (isObject(value) ? value[field] : undefined);
  const template = path.split('.').reduce(within, object);
  const named = [object, template].map((holder) => within(within(holder, 'metadata'), 'annotations'));
  return [...new Set(named.flatMap((annotations) => (isObject(annotations) ? Object.keys(annotations) : [])))];
}

/**
 * KubeVirt's controller copies changes of a VM to its VMI part by part, and copies nothing more after a refusal. A
 * user's account with this name only leaves their own VMI unchecked.
 */
function isKubeVirtController({ userInfo }: AdmissionRequest): boolean {
  return /^system:serviceaccount:[^:]+:kubevirt-controller$/.test(userInfo?.username ?? '');
}

/** Warns once, when the name is written, and only about VMs that opt in. */
function aboutSchedulerOf(current: ReadTemplate, previous: ReadTemplate | undefined, schedulerName: string): string[] {
  const [name, before] = [current, previous].map((template) => template?.spec.schedulerName ?? undefined);
  return name === before || !hasAsked(current.metadata) ? [] : schedulerWarnings(name, schedulerName);
}

function checkedFields({ outer, metadata, spec, instancetype }: ReadTemplate): string {
  const { domain, networks, nodeSelector, affinity, livenessProbe, schedulerName, tolerations } = spec;
  const fields = [domain, networks, nodeSelector, affinity, livenessProbe, schedulerName, tolerations];
  return JSON.stringify([outer.annotations, metadata.annotations, instancetype, fields]);
}

const ABOUT = `annotation ${CPU_MASK_ANNOTATION}:`;

/**
 * No node could apply the mask. Compares it with the nodes' reports, without the pods that run there now, because those
 * end. @throws ParseError
 */
function hostWarnings(
  current: ReadTemplate,
  previous: ReadTemplate | undefined,
  view: Pick<ClusterView, 'maskHosts'>,
): string[] {
  const wish = maskRequestOf(current.metadata);
  if (wish === undefined || questionOf(current) === (previous && questionOf(previous))) return [];
  const hosts = view.maskHosts(current.spec);
  const none = `${ABOUT} no node that this VM may go to`;
  if (hosts.length === 0) return [`${none} reports its CPUs, which a VM with a mask needs`];
  if (hosts.every(({ pinsVMs }) => pinsVMs === false))
    return [`${none} applies CPU masks (--vm-pinning off): it will not start`];
  const fits = hosts.map((host) => fitMask(wish, host)).filter((fit) => fit.fits);
  if (fits.some(({ fellBack }) => !fellBack)) return [];
  const withCpus = `${none} has the CPUs of ${briefMask(wish.mask)} online and unreserved`;
  if (fits.length > 0) return [`${withCpus}: it will run on all CPUs of a node (${FIX_CPU_MISMATCH_ANNOTATION})`];
  return [`${withCpus}: it will not start (see plumbline verify)`];
}

function questionOf({ metadata, spec }: ReadTemplate): string {
  const wish = maskRequestOf(metadata);
  return `${wish && maskRequestKey(wish)} ${selectionKey(spec)}`;
}

/** A running VM keeps the old mask: its VMI has the annotations from its creation, and KubeVirt does not copy others. */
function runningWarnings(current: ReadTemplate, previous: ReadTemplate | undefined): string[] {
  if (previous === undefined || current.path === undefined || !current.running) return [];
  const [mask, before] = [current, previous].map(({ metadata }) => metadata.annotations?.[CPU_MASK_ANNOTATION]);
  const warning = `${ABOUT} the VM is running; the new value applies when it restarts. Until then it stays pinned as before, and hotplugged vCPUs run on any of its CPUs`;
  return mask === before ? [] : [warning];
}

const DEFINITION_FINDINGS: ReadonlySet<string> = new Set(['refused-network', 'unreadable-network', 'unknown-network']);

/**
 * With an instancetype it is unknown whether the VM has exclusive CPUs: the VMI gets most findings then. An existing
 * object only gets warnings. @throws ParseError
 */
async function reviewNetworks(
  namespace: string,
  current: ReadTemplate,
  previous: ReadTemplate | undefined,
  options: ClusterFactsOptions,
): Promise<{ readonly warnings: readonly string[]; readonly refusal: string | undefined }> {
  const { metadata, spec } = current;
  const exclusive = !current.instancetype && spec.domain.cpu?.dedicatedCpuPlacement === true;
  const owner = { namespace, vmi: { metadata, spec }, exclusive };
  const cluster = await gatherCluster(owner, spec, options);
  const { networks, required, findings } = podNetworks(owner, cluster.networks);
  if (current.instancetype) {
    const about = findings.filter(({ code }) => DEFINITION_FINDINGS.has(code));
    return { warnings: about.map(({ message }) => message), refusal: undefined };
  }
  const spansCells = spec.domain.cpu?.numa?.guestMappingPassthrough != null;
  const guest = { cpus: required.length > 0 ? launcherCpus({ metadata, spec }).total : 0, spansCells };
  const reach = reachFindings(required, guest, cluster, options.oversized);
  const refusal = previous === undefined ? reach.find(({ severity }) => severity === 'error') : undefined;
  const before = previous && new Set((previous.spec.networks ?? []).map(({ name }) => name));
  const plugged = networks.filter(
    ({ name, role, affinity, kind }) =>
      before?.has(name) === false &&
      role === 'secondary' &&
      affinity === 'required' &&
      (kind === 'physnet' || kind === 'tunnel'),
  );
  const aboutPlugged = ({ name }: { readonly name: string }) =>
    `interface ${name} is plugged into a VM that keeps its CPUs while it runs: its NUMA affinity applies from the next migration or restart`;
  const warnings = [...[...findings, ...reach].map(({ message }) => message), ...plugged.map(aboutPlugged)];
  return { warnings, refusal: refusal?.message };
}
