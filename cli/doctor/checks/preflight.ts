import { countText } from '../../../model/amounts.ts';
import { DPU_LEASE_NAMESPACE } from '../../../model/names.ts';
import { featureGates } from '../../support/objects.ts';
import { someNames } from '../../support/terminal.ts';
import type { KubeletSettings, PreflightFacts } from '../facts/preflight.ts';
import { type AreaRecorder, affecting, areaCheck, minorOf } from './finding.ts';
import { NOT_NEAR, SHARED_CORES } from './kubelet.ts';

/** Minor versions of Kubernetes 1 that this version was tested with: docs/reference/versions.md. */
const KUBERNETES = { oldest: 33, newest: 37 } as const;

export const PRODUCTS = [
  {
    name: 'cert-manager',
    group: 'cert-manager.io',
    severity: 'error',
    impact: 'the webhook gets no certificate: it does not start, and the API server does not call it',
    todo: 'install cert-manager first (https://cert-manager.io/docs/installation), or use the component no-cert-manager and run certificates.sh (docs/tasks/operate.md#without-cert-manager)',
  },
  {
    name: 'KubeVirt',
    group: 'kubevirt.io',
    severity: 'warning',
    impact: 'there are no VMs; only ordinary pods can opt in to whole cores',
    todo: 'install KubeVirt, before or after Plumbline',
  },
  {
    name: 'multus',
    group: 'k8s.cni.cncf.io',
    severity: 'warning',
    impact: 'VMs have only the pod network, and Plumbline aligns no VM with a network',
    todo: 'install multus, before or after Plumbline, if VMs need secondary networks',
  },
  {
    name: 'the Prometheus operator',
    group: 'monitoring.coreos.com',
    severity: 'warning',
    impact: 'the component monitoring cannot be applied; the daemons still serve metrics',
    todo: 'omit the component monitoring, or install the operator first',
  },
] as const;

const SETTINGS = [
  {
    applies: ({ cpuManagerPolicy }: KubeletSettings) => cpuManagerPolicy !== 'static',
    what: 'CPU manager policy none',
    why: 'VMs with dedicated CPUs cannot run there',
    todo: 'set cpuManagerPolicy: static on nodes for such VMs (docs/tasks/install.md#requirements)',
  },
  {
    applies: ({ cpuManagerPolicy, cpuManagerPolicyOptions }: KubeletSettings) =>
      cpuManagerPolicy === 'static' && cpuManagerPolicyOptions['full-pcpus-only'] !== 'true',
    what: 'the option full-pcpus-only is off',
    ...SHARED_CORES,
  },
  {
    applies: ({ topologyManagerPolicy }: KubeletSettings) => topologyManagerPolicy === 'none',
    what: 'topology manager policy none',
    ...NOT_NEAR,
  },
];

export const checkPreflight = areaCheck('preflight', (recorder, facts: PreflightFacts) => {
  checkVersion(recorder, facts);
  for (const { name, group, severity, impact, todo } of PRODUCTS) {
    if (facts.groups.has(group)) recorder.checked(name);
    else recorder[severity](`${name} is not installed: the API server does not serve ${group}`, impact, todo);
  }
  checkInjector(recorder, facts);
  checkCpuManagerGate(recorder, facts);
  checkSettings(recorder, facts);
  if (facts.dpuNamespace?.missing === 'absent') {
    recorder.error(
      `nodes have a DPU, and the namespace ${DPU_LEASE_NAMESPACE} does not exist`,
      'the overlay dpu-host cannot be applied: it needs that namespace for the Leases of DPUs',
      'install OVN-Kubernetes first',
    );
  }
  if (facts.denied.length > 0) {
    recorder.error(
      `you may not ${someNames(facts.denied, 4)}`,
      'you cannot apply the manifests',
      'install as a user with the role cluster-admin: Kubernetes lets a user grant only the permissions that the user has',
    );
  } else recorder.checked('you may create every object of the manifests');
});

function checkVersion(recorder: AreaRecorder, { version }: PreflightFacts): void {
  const apiVersion = recorder.value(version, 'the API server’s version');
  const minor = minorOf(apiVersion ?? '');
  if (minor === undefined) return;
  if (minor < KUBERNETES.oldest) {
    const what = `Kubernetes ${apiVersion} is older than 1.${KUBERNETES.oldest}`;
    const impact = 'agents may fail to read the kubelet’s settings, and the API server may reject policies';
    recorder.error(what, impact, 'upgrade the cluster first');
  } else if (minor > KUBERNETES.newest) {
    recorder.warning(
      `Kubernetes ${apiVersion} is newer than 1.${KUBERNETES.newest}, the newest that this version supports`,
      'the extender only counts CPUs for kubelets that it does not know',
      'upgrade Plumbline if there is a newer version (docs/reference/versions.md)',
    );
  } else recorder.checked(`Kubernetes ${apiVersion}`);
}

function checkCpuManagerGate(recorder: AreaRecorder, { groups, kubevirts }: PreflightFacts): void {
  if (!groups.has('kubevirt.io')) return;
  const installed = recorder.value(kubevirts, 'KubeVirt objects') ?? [];
  if (installed.length === 0 || installed.some((kubevirt) => featureGates(kubevirt).includes('CPUManager'))) return;
  recorder.warning(
    'KubeVirt’s feature gate CPUManager is off',
    'KubeVirt labels no node for VMs with dedicated CPUs, so they stay Pending',
    'add CPUManager to the featureGates of the KubeVirt object (docs/tasks/install.md#2-configure-kubevirt)',
  );
}

function checkInjector(recorder: AreaRecorder, { groups, injectors }: PreflightFacts): void {
  if (!groups.has('cert-manager.io')) return;
  const deployments = recorder.value(injectors, 'cert-manager’s cainjector');
  if (deployments === undefined || deployments.some(({ status }) => (status?.readyReplicas ?? 0) > 0)) return;
  recorder.warning(
    'no replica of cert-manager’s cainjector is ready',
    'the API server cannot verify the webhook’s certificate, so it does not call the webhook',
    'run cert-manager with its cainjector',
  );
}

const UNREAD = { forbidden: 'you may not get nodes/proxy', absent: 'the kubelet does not answer' } as const;

function checkSettings(recorder: AreaRecorder, { nodes, kubelets }: PreflightFacts): void {
  const all = recorder.value(nodes, 'nodes');
  const read = [...kubelets].flatMap(([name, { value }]) => (value === undefined ? [] : [[name, value] as const]));
  for (const { applies, what, why, todo } of SETTINGS) {
    const names = read.filter(([, settings]) => applies(settings)).map(([name]) => name);
    if (names.length === 0) continue;
    const where = `${countText(names.length, 'node')}: ${someNames(names)}`;
    recorder.warning(`${what} on ${where}`, why, todo, affecting('node', names));
  }
  if (read.length > 0) recorder.checked(`${countText(read.length, 'kubelet')} queried`);
  for (const missing of ['forbidden', 'absent'] as const) {
    const names = [...kubelets].filter(([, result]) => result.missing === missing).map(([name]) => name);
    if (names.length > 0) recorder.notChecked(`settings of ${someNames(names)} (${UNREAD[missing]})`);
  }
  const left = (all?.length ?? 0) - kubelets.size;
  if (left > 0) recorder.notChecked(`settings of ${countText(left, 'more node')} (a sample is enough)`);
}
