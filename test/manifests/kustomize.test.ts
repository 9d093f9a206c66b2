import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { parseNodeAgentConfig } from '../../node-agent/config.ts';
import { parseSchedulerConfiguration } from '../../sandbox/scheduler/configuration.ts';
import { parseSchedulerPluginConfig } from '../../scheduler-plugin/config.ts';
import { parseWebhookConfig } from '../../webhook/config.ts';
import { objectsOf, render } from '../real/install/rendered.ts';
import { root } from '../support/bundles.ts';
import { needs, pathOf } from '../support/parts.ts';

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly annotations?: Record<string, string>;
  };
  readonly [key: string]: unknown;
}

interface Container {
  readonly name: string;
  readonly image: string;
  readonly args?: string[];
  readonly securityContext: {
    readonly readOnlyRootFilesystem?: boolean;
    readonly capabilities?: { drop?: string[]; add?: string[] };
  };
  readonly volumeMounts?: { name: string; mountPath: string }[];
}

const manifests = join(root, 'manifests');

describe('the manifests', () => {
  needs('kubectl');
  let objects: Manifest[] = [];
  before(() => {
    const yaml = execFileSync(pathOf('kubectl'), ['kustomize', join(manifests, 'base')], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    objects = parseAllDocuments(yaml).map((document) => document.toJS() as Manifest);
  });

  const find = (kind: string, name: string): Manifest => {
    const found = objects.find((object) => object.kind === kind && object.metadata.name === name);
    assert.ok(found, `no ${kind} ${name}`);
    return found;
  };
  const containersOf = (object: Manifest): Container[] =>
    (object['spec'] as { template: { spec: { containers: Container[] } } }).template.spec.containers;

  it('build, everything in plumbline-system that has a namespace', () => {
    for (const name of ['plumbline-webhook', 'plumbline-scheduler-plugin']) {
      for (const kind of [
        'Deployment',
        'Service',
        'ServiceAccount',
        'Certificate',
        'ClusterRole',
        'ClusterRoleBinding',
      ]) {
        find(kind, name);
      }
    }
    find('DaemonSet', 'plumbline-node-agent');
    find('CustomResourceDefinition', 'nodetopologies.plumbline.dev');
    for (const { kind, metadata } of objects) {
      if (metadata.namespace !== undefined)
        assert.equal(metadata.namespace, 'plumbline-system', `${kind} ${metadata.name}`);
    }
  });

  it('let cert-manager put the CA of the webhook’s own certificate into its configuration', () => {
    const { metadata } = find('MutatingWebhookConfiguration', 'plumbline-webhook');
    const [namespace, name] = (metadata.annotations?.['cert-manager.io/inject-ca-from'] ?? '').split('/');
    const certificate = find('Certificate', name ?? '');
    assert.equal(certificate.metadata.namespace, namespace);
    const { secretName, dnsNames } = certificate['spec'] as { secretName: string; dnsNames: string[] };
    assert.ok(dnsNames.includes('plumbline-webhook.plumbline-system.svc'));
    const { volumes } = (
      find('Deployment', 'plumbline-webhook')['spec'] as { template: { spec: { volumes: unknown } } }
    ).template.spec;
    assert.ok(JSON.stringify(volumes).includes(secretName));
  });

  it('send only launcher pods to the webhook, and none of its own namespace', () => {
    const [webhook] = find('MutatingWebhookConfiguration', 'plumbline-webhook')['webhooks'] as Record<
      string,
      unknown
    >[];
    assert.deepEqual(webhook?.['objectSelector'], { matchLabels: { 'kubevirt.io': 'virt-launcher' } });
    assert.deepEqual(webhook?.['sideEffects'], 'NoneOnDryRun');
    assert.deepEqual(webhook?.['reinvocationPolicy'], 'IfNeeded');
    assert.match(JSON.stringify(webhook?.['namespaceSelector']), /NotIn.*plumbline-system/);
  });

  it('give every container a read-only root and no capability but those it names', () => {
    for (const object of objects.filter(({ kind }) => kind === 'Deployment' || kind === 'DaemonSet')) {
      for (const { name, securityContext } of containersOf(object)) {
        assert.equal(securityContext.readOnlyRootFilesystem, true, name);
        assert.deepEqual(securityContext.capabilities?.drop, ['ALL'], name);
      }
    }
  });

  it('leave every agent the capability it needs, whatever a component adds', function () {
    this.timeout(60_000);
    const components = ['gate', 'dpu', 'dpu-observe', 'openshift'].map((name) => `base/node-agent/components/${name}`);
    for (const component of components) {
      const agents = objectsOf(render('base', [component])).filter(({ kind }) => kind === 'DaemonSet');
      for (const agent of agents) {
        const [container] = containersOf(agent as Manifest);
        assert.ok(
          container?.securityContext.capabilities?.add?.includes('SYS_NICE'),
          `${agent.metadata.name}: ${component}`,
        );
      }
    }
  });

  it('start the daemons with settings that they accept', () => {
    const args = (kind: string, name: string) => containersOf(find(kind, name))[0]?.args ?? [];
    parseWebhookConfig(args('Deployment', 'plumbline-webhook'));
    parseSchedulerPluginConfig(args('Deployment', 'plumbline-scheduler-plugin'));
    parseNodeAgentConfig([...args('DaemonSet', 'plumbline-node-agent'), '--node-name', 'worker-0']);
  });

  it('give agents no verb that writes nodes', () => {
    const rules = find('ClusterRole', 'plumbline-node-agent')['rules'] as { resources: string[]; verbs: string[] }[];
    const onNodes = rules.filter(({ resources }) => resources.includes('nodes')).flatMap(({ verbs }) => verbs);
    assert.deepEqual(onNodes, ['get']);
  });

  it('have an extender entry that a scheduler accepts and that ignores other pods', () => {
    const text = readFileSync(join(manifests, 'scheduler/kube-scheduler-config.yaml'), 'utf8');
    const { extenders } = parseSchedulerConfiguration(text);
    const [extender] = extenders;
    assert.equal(extender?.nodeCacheCapable, true);
    assert.equal(extender?.enableHTTPS, true);
    const managed = ['devices.kubevirt.io/kvm', 'devices.kubevirt.io/tun', 'plumbline.dev/placed'];
    assert.deepEqual(
      extender?.managedResources.map(({ name }) => name),
      managed,
    );
    const { profiles } = parse(text) as { profiles: { percentageOfNodesToScore: number }[] };
    assert.equal(profiles[0]?.percentageOfNodesToScore, 100);
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
