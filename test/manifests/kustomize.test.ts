import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { parseConsoleConfig } from '../../console/server/config.ts';
import { ASKING } from '../../model/launcher/annotation.ts';
import { DECISION_ANNOTATION, PLACEMENT_ANNOTATION } from '../../model/names.ts';
import { NETWORKS_ANNOTATION } from '../../model/networks/attachments.ts';
import { parseNodeAgentConfig } from '../../node-agent/wiring/config.ts';
import { parseSchedulerConfiguration } from '../../sandbox/scheduler/extender.ts';
import { parseSchedulerPluginConfig } from '../../scheduler-plugin/wiring/config.ts';
import { parseWebhookConfig } from '../../webhook/config.ts';
import type { KubernetesObject } from '../real/control-plane-stage.ts';
import { objectsOf, render } from '../real/install/rendered-fixture.ts';
import { root } from '../support/bundles.ts';
import { needs } from '../support/parts.ts';

interface Container {
  readonly name: string;
  readonly image: string;
  readonly args?: string[];
  readonly ports?: { containerPort: number }[];
  readonly restartPolicy?: string;
  readonly env?: { name: string; value?: string }[];
  readonly securityContext: {
    readonly readOnlyRootFilesystem?: boolean;
    readonly capabilities?: { drop?: string[]; add?: string[] };
  };
  readonly volumeMounts?: { name: string; mountPath: string; readOnly?: boolean }[];
}

interface PodSpec {
  readonly containers: readonly Container[];
  readonly initContainers?: readonly Container[];
  readonly volumes: readonly { readonly name: string; readonly hostPath?: { readonly path: string } }[];
}

interface CertificateSpec {
  readonly isCA?: boolean;
  readonly secretName: string;
  readonly issuerRef: { readonly name: string };
  readonly duration?: string;
  readonly renewBefore?: string;
  readonly privateKey: { readonly rotationPolicy: string };
}

const manifests = join(root, 'manifests');
const AGENT = 'base/node-agent/components';

describe('the manifests', () => {
  needs('kubectl');
  let objects: KubernetesObject[] = [];
  before(() => {
    objects = built();
  });

  const built = (...components: string[]) => objectsOf(render('base', components));
  const find = (kind: string, name: string, all: readonly KubernetesObject[] = objects) =>
    all.find((object) => object.kind === kind && object.metadata.name === name) ?? assert.fail(`no ${kind} ${name}`);
  const podOf = (object: KubernetesObject) => (object['spec'] as { template: { spec: PodSpec } }).template.spec;
  const containersOf = (object: KubernetesObject) => podOf(object).containers;

  it('let cert-manager put the CA of the webhook’s certificate into its configuration', () => {
    const { metadata } = find('MutatingWebhookConfiguration', 'plumbline-webhook');
    const annotations = metadata['annotations'] as Readonly<Record<string, string>>;
    const [namespace, name] = (annotations['cert-manager.io/inject-ca-from'] ?? '').split('/');
    const certificate = find('Certificate', name ?? '');
    assert.equal(certificate.metadata.namespace, namespace);
    const { secretName, dnsNames } = certificate['spec'] as { secretName: string; dnsNames: string[] };
    assert.ok(dnsNames.includes('plumbline-webhook.plumbline-system.svc'));
    assert.ok(JSON.stringify(podOf(find('Deployment', 'plumbline-webhook')).volumes).includes(secretName));
  });

  it('send only launcher pods to the webhook, and none of its own namespace', () => {
    const webhooks = find('MutatingWebhookConfiguration', 'plumbline-webhook')['webhooks'];
    const [{ objectSelector, sideEffects, reinvocationPolicy, namespaceSelector } = assert.fail()] =
      webhooks as Readonly<Record<string, unknown>>[];
    assert.deepEqual(
      [objectSelector, sideEffects, reinvocationPolicy],
      [{ matchLabels: { 'kubevirt.io': 'virt-launcher' } }, 'None', 'IfNeeded'],
    );
    assert.match(JSON.stringify(namespaceSelector), /NotIn.*plumbline-system/);
  });

  interface Entry {
    readonly name: string;
    readonly failurePolicy: 'Fail' | 'Ignore';
    readonly matchConditions: readonly { readonly name: string; readonly expression: string }[];
  }
  const entriesOf = (all: readonly KubernetesObject[]): Entry[] =>
    all.flatMap((one) => (one.kind.endsWith('WebhookConfiguration') ? (one['webhooks'] as Entry[]) : []));
  const conditionsOf = (all: readonly KubernetesObject[], ...names: readonly string[]): string[] =>
    names.flatMap((name) =>
      (entriesOf(all).find((one) => one.name === name)?.matchConditions ?? [])
        .filter((matchCondition) => matchCondition.name !== 'required')
        .map(({ expression }) => expression),
    );
  const LAUNCHERS = ['launcher.plumbline.dev', 'final.plumbline.dev'] as const;
  const annotationsIn = (expression = '') =>
    new Set((expression.match(/'[^']*\/[^']+'/g) ?? []).map((name) => name.slice(1, -1)));

  it('send launchers that request something or have reserved names; those with networks through an entry that refuses nothing', () => {
    const [mutating, validating, ...more] = conditionsOf(objects, ...LAUNCHERS);
    assert.deepEqual([validating, more], [mutating, []]);
    const asking = ASKING.filter((name) => name !== NETWORKS_ANNOTATION);
    assert.deepEqual(annotationsIn(mutating), new Set([...asking, DECISION_ANNOTATION, PLACEMENT_ANNOTATION]));
    const [condition] = conditionsOf(objects, 'networks.plumbline.dev');
    assert.deepEqual(annotationsIn(condition), new Set(ASKING));
    assert.equal(entriesOf(objects).find(({ name }) => name === 'networks.plumbline.dev')?.failurePolicy, 'Ignore');
  });

  it('call no entry before the webhook has switched itself on, and refuse only pods that request something', () => {
    const required =
      /authorizer\.serviceAccount\('plumbline-system', 'plumbline-webhook'\).*check\('require'\)\.allowed\(\)$/;
    const entries = entriesOf(objects);
    const ungated = entries.filter(
      ({ matchConditions }) => !matchConditions.some(({ expression }) => required.test(expression)),
    );
    assert.deepEqual(
      ungated.map(({ name }) => name),
      ['required.plumbline.dev'],
      'it decides about one RoleBinding',
    );
    const failing = entries.filter(({ failurePolicy }) => failurePolicy === 'Fail').map(({ name }) => name);
    assert.deepEqual(failing.sort(), [
      ...['final-opt-in.plumbline.dev', 'final.plumbline.dev', 'launcher.plumbline.dev', 'opt-in.plumbline.dev'],
      ...['required.plumbline.dev', 'resize.plumbline.dev', 'starts.plumbline.dev'],
    ]);
    const binding = find('RoleBinding', 'plumbline-webhook-required');
    assert.equal(binding['subjects'], undefined, 'applying it again leaves those of the webhook alone');
  });

  it('send every launcher with a CPU limit if all are aligned, and configure the webhook accordingly', () => {
    const everywhere = built('components/align-all');
    const [mutating = '', validating, ...more] = conditionsOf(everywhere, ...LAUNCHERS);
    assert.deepEqual([validating, more], [mutating, []]);
    assert.deepEqual(conditionsOf(everywhere, 'networks.plumbline.dev'), [], 'it would be asked twice');
    assert.match(mutating, /c\.name == 'compute' && .*'cpu' in c\.resources\.limits\) \|\|/);
    const alignmentIn = (all: readonly KubernetesObject[]) =>
      containersOf(find('Deployment', 'plumbline-webhook', all))[0]?.env?.find(
        ({ name }) => name === 'PLUMBLINE_ALIGNMENT',
      )?.value;
    assert.equal(parseWebhookConfig(['--alignment', alignmentIn(everywhere) ?? '']).alignment, 'auto');
    assert.equal(alignmentIn(objects), undefined);
  });

  it('give every container a read-only root and only the named capabilities', () => {
    for (const object of objects.filter(({ kind }) => kind === 'Deployment' || kind === 'DaemonSet')) {
      for (const { name, securityContext } of containersOf(object)) {
        assert.equal(securityContext.readOnlyRootFilesystem, true, name);
        assert.deepEqual(securityContext.capabilities?.drop, ['ALL'], name);
      }
    }
  });

  it('let a DPU renew its token in a writable place, and mention no year', function () {
    this.timeout(300_000);
    const named = (all: readonly KubernetesObject[]) =>
      all.filter(({ metadata }) => metadata.name.startsWith('plumbline-dpu')).map(({ kind }) => kind);
    const dpuObjects = built(`${AGENT}/dpu`);
    const role = dpuObjects.find(({ kind, metadata }) => kind === 'Role' && metadata.namespace === 'plumbline-dpu');
    assert.deepEqual(role?.['rules'], [{ apiGroups: [''], resources: ['serviceaccounts/token'], verbs: ['create'] }]);
    assert.equal(named(dpuObjects).filter((kind) => kind === 'ValidatingAdmissionPolicyBinding').length, 2);
    assert.deepEqual(named(built(`${AGENT}/dpu-observe`)), [], 'where OVN-Kubernetes renews there are no DPU accounts');
    const [agent] = objectsOf(render('overlays/dpu')).filter(({ kind }) => kind === 'DaemonSet');
    const mounts = (agent && containersOf(agent)[0]?.volumeMounts) ?? [];
    const writable = mounts.filter(({ readOnly }) => readOnly !== true).map(({ mountPath }) => mountPath);
    assert.deepEqual(writable, ['/var/lib/plumbline']);
    const files = ['overlays/dpu/plumbline-node-agent.service', 'base/node-agent/components/dpu/dpu-identities.yaml'];
    const [unit = '', identities = ''] = files.map((file) => readFileSync(join(manifests, file), 'utf8'));
    assert.match(unit, /^StateDirectory=plumbline$/m);
    const docs = ['reference/dpu.md', 'tasks/dpu.md'].map((file) => readFileSync(join(root, 'docs', file), 'utf8'));
    for (const text of [identities, ...docs]) {
      assert.match(text, /create token worker-1 --duration 24h/);
      assert.doesNotMatch(text, /8760h/);
    }
  });

  it('match docs/tasks/upgrade.md, which has a line for every host path that an agent may write', function () {
    this.timeout(300_000);
    const page = readFileSync(join(root, 'docs/tasks/upgrade.md'), 'utf8');
    const agents = built(`${AGENT}/gate`, `${AGENT}/dpu`).filter(({ kind }) => kind === 'DaemonSet');
    const places = agents.map(podOf).flatMap(({ containers, volumes }) => {
      const writable = containers.flatMap(({ volumeMounts = [] }) =>
        volumeMounts.filter((volumeMount) => !volumeMount.readOnly),
      );
      return writable.flatMap(({ name }) => volumes.find((volume) => volume.name === name)?.hostPath?.path ?? []);
    });
    assert.ok(new Set(places).size >= 5, [...new Set(places)].join());
    assert.deepEqual(
      [...new Set(places)].filter((path) => !page.includes(`\`${path}\``)),
      [],
    );
  });

  it('run a kube-scheduler that calls the extender of its own pod only over loopback', () => {
    const pod = podOf(find('Deployment', 'plumbline-scheduler'));
    const [extender] = pod.initContainers ?? [];
    const { schedulerLease, host, port } = parseSchedulerPluginConfig(extender?.args ?? []);
    assert.deepEqual([host, extender?.restartPolicy], ['127.0.0.1', 'Always']);
    const text = readFileSync(join(manifests, 'base/scheduler/config.yaml'), 'utf8');
    const [entry] = parseSchedulerConfiguration(text).extenders;
    assert.equal(entry?.urlPrefix, `http://${host}:${port}`);
    assert.deepEqual([entry?.ignorable, entry?.managedResources], [false, []]);
    const { profiles, leaderElection } = parse(text) as {
      profiles: { schedulerName: string; percentageOfNodesToScore: number }[];
      leaderElection: { resourceNamespace: string; resourceName: string };
    };
    assert.equal(schedulerLease, `${leaderElection.resourceNamespace}/${leaderElection.resourceName}`);
    // The webhook sets that scheduler on pods, and both may read its Lease.
    const { schedulerName } = parseWebhookConfig([]);
    assert.deepEqual(profiles, [{ schedulerName, percentageOfNodesToScore: 100 }]);
    for (const role of ['plumbline-scheduler', 'plumbline-webhook']) {
      const [rule] = find('Role', role)['rules'] as { resourceNames: string[] }[];
      assert.deepEqual(rule?.resourceNames, [leaderElection.resourceName], role);
    }
    // No path leads to the extender from outside its pod.
    const ports = [...pod.containers, extender].flatMap((one) => one?.ports ?? []);
    assert.ok(ports.every(({ containerPort }) => containerPort !== port));
    for (const kind of ['Service', 'EndpointSlice', 'Certificate']) {
      const those = objects.filter((object) => object.kind === kind).map(({ metadata }) => metadata.name);
      assert.ok(!those.some((name) => name.includes('scheduler')), `${kind}: ${those.join(', ')}`);
    }
  });

  it('have a kube-scheduler of each supported version', () => {
    for (const minor of [33, 34, 35, 36, 37]) {
      const text = readFileSync(join(manifests, `components/kubernetes-1.${minor}/kustomization.yaml`), 'utf8');
      const { images } = parse(text) as { images: { name: string; newTag: string }[] };
      assert.equal(images[0]?.name, 'registry.k8s.io/kube-scheduler');
      assert.match(images[0]?.newTag ?? '', new RegExp(`^v1\\.${minor}\\.\\d+$`));
    }
  });

  it('run the console only with its component, on loopback, with an account that lists and watches only', () => {
    const ofConsole = (all: readonly KubernetesObject[]) =>
      all.filter(({ metadata }) => metadata.name === 'plumbline-console');
    assert.deepEqual(ofConsole(objects), []);
    const own = ofConsole(built('components/console'));
    assert.deepEqual(own.map(({ kind }) => kind).sort(), [
      ...['ClusterRole', 'ClusterRoleBinding', 'Deployment', 'NetworkPolicy', 'Role', 'RoleBinding', 'ServiceAccount'],
    ]);
    const rules = own.flatMap((one) => (one['rules'] ?? []) as { resources: string[]; verbs: string[] }[]);
    assert.ok(rules.length > 0);
    // Events are requested when a page shows a history.
    const verbsOf = (resources: readonly string[]) => (resources.includes('events') ? ['list'] : ['list', 'watch']);
    for (const { resources, verbs } of rules) assert.deepEqual(verbs, verbsOf(resources), resources.join());
    const deployment = find('Deployment', 'plumbline-console', own);
    const [container] = containersOf(deployment);
    assert.deepEqual(parseConsoleConfig(container?.args ?? []).address, { host: '127.0.0.1', port: 8083 });
    assert.equal(container?.securityContext.readOnlyRootFilesystem, true);
    assert.deepEqual(container?.securityContext.capabilities?.drop, ['ALL']);
    assert.match(JSON.stringify(deployment), /"runAsNonRoot":true/);
  });

  describe('for an extender next to the cluster’s own scheduler', () => {
    const folder = join(manifests, 'scheduler/loopback');
    const read = (file: string) => readFileSync(join(folder, file), 'utf8');

    it('have no other scheduler, and route no pod to one', () => {
      const loopback = built('scheduler/loopback');
      const left = loopback.filter(({ metadata }) => /^plumbline-scheduler/.test(metadata.name));
      assert.deepEqual(left.map(({ kind, metadata }) => `${kind} ${metadata.name}`).sort(), [
        'ClusterRole plumbline-scheduler-plugin',
        'ClusterRoleBinding plumbline-scheduler-plugin',
        'ServiceAccount plumbline-scheduler-plugin',
      ]);
      const account = { kind: 'ServiceAccount', name: 'plumbline-scheduler-plugin', namespace: 'plumbline-system' };
      assert.deepEqual(find('ClusterRoleBinding', 'plumbline-scheduler-plugin', loopback)['subjects'], [account]);
      assert.ok(!entriesOf(loopback).some(({ name }) => name === 'scheduler.plumbline.dev'));
      const [container] = containersOf(find('Deployment', 'plumbline-webhook', loopback));
      assert.ok(container?.env?.some(({ name, value }) => name === 'PLUMBLINE_SCHEDULER_NAME' && value === ''));
    });

    it('follow the Lease of kube-scheduler, on ports of loopback that the node’s agent does not use', () => {
      const { spec } = parse(read('plumbline-scheduler-plugin.yaml')) as { spec: { containers: Container[] } };
      const { schedulerLease, host, port, probeHost, probePort } = parseSchedulerPluginConfig(
        spec.containers[0]?.args ?? [],
      );
      assert.deepEqual([schedulerLease, host, probeHost], ['kube-system/kube-scheduler', '127.0.0.1', '127.0.0.1']);
      const agent = parseNodeAgentConfig(['--node-name', 'worker-0']);
      assert.equal(new Set([port, probePort, agent.probePort]).size, 3);
      const { extenders } = parseSchedulerConfiguration(read('kube-scheduler-config.yaml'));
      assert.deepEqual(
        extenders.map(({ urlPrefix }) => urlPrefix),
        [`http://${host}:${port}`, `http://${host}:${port}`],
      );
    });

    it('check every pod, score only VMs and pods that opt in, and block no pod while the extender is down', () => {
      const text = read('kube-scheduler-config.yaml');
      const [filter, scores] = parseSchedulerConfiguration(text).extenders;
      assert.deepEqual([filter?.filterVerb, filter?.managedResources, filter?.ignorable], ['filter', [], true]);
      assert.equal(scores?.ignorable, true);
      assert.deepEqual(
        scores?.managedResources.map(({ name }) => name),
        ['devices.kubevirt.io/kvm', 'devices.kubevirt.io/tun', 'plumbline.dev/placed'],
      );
      for (const extender of [filter, scores]) assert.equal(extender?.nodeCacheCapable, true);
      const { profiles, extenders } = parse(text) as {
        profiles: { percentageOfNodesToScore: number }[];
        extenders: { httpTimeout: string }[];
      };
      assert.equal(profiles[0]?.percentageOfNodesToScore, 100);
      // A call blocks the only scheduling thread.
      for (const { httpTimeout } of extenders) {
        const [, milliseconds] = /^(\d+)ms$/.exec(httpTimeout) ?? [];
        assert.ok(Number(milliseconds) <= 500, `httpTimeout is ${httpTimeout}`);
      }
    });
  });

  it('issue every certificate from one authority that outlives them and keeps its key', () => {
    const specs = new Map(
      objects.flatMap(({ kind, metadata, spec }) =>
        kind === 'Certificate' ? [[metadata.name, spec as CertificateSpec] as const] : [],
      ),
    );
    const hours = (duration = '0h') => Number(/^(\d+)h$/.exec(duration)?.[1]);
    const { 'plumbline-ca': authority, ...leaves } = Object.fromEntries(specs);
    assert.ok(authority?.isCA);
    assert.equal(authority.privateKey.rotationPolicy, 'Never');
    const issuer = objects.find(({ kind, metadata }) => kind === 'Issuer' && metadata.name === 'plumbline-ca');
    assert.deepEqual(issuer?.['spec'], { ca: { secretName: authority.secretName } });
    assert.deepEqual(Object.keys(leaves), ['plumbline-webhook']);
    for (const [name, { issuerRef, duration, renewBefore, isCA = false }] of Object.entries(leaves)) {
      assert.deepEqual([issuerRef.name, isCA], ['plumbline-ca', false], name);
      // Alerts fire 14 days before the end: renewal comes first, and a copied authority lasts longer.
      assert.ok(hours(renewBefore) >= 720 && hours(renewBefore) < hours(duration), name);
      assert.ok(hours(duration) < hours(authority.renewBefore), name);
    }
  });

  it('describe every field of a report that the daemons read', async () => {
    const { nodeTopologyStatus } = await import('../../kube/node-topology.ts');
    const [version] = (
      find('CustomResourceDefinition', 'nodetopologies.plumbline.dev')['spec'] as {
        versions: {
          schema: { openAPIV3Schema: { properties: { status: { properties: object; required: string[] } } } };
        }[];
      }
    ).versions;
    const status = version?.schema.openAPIV3Schema.properties.status;
    assert.deepEqual(Object.keys(status?.properties ?? {}).sort(), Object.keys(nodeTopologyStatus.shape).sort());
    const required = Object.entries(nodeTopologyStatus.shape).filter(
      ([, field]) => !field.safeParse(undefined).success,
    );
    assert.deepEqual([...(status?.required ?? [])].sort(), required.map(([name]) => name).sort());
  });
});
