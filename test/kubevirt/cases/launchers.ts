import assert from 'node:assert/strict';
import type { Container, JsonRecord, KubeObject, KubePod } from '../../../sandbox/objects.ts';
import { inParallel } from '../../real/scheduler/stage.ts';
import { noteVersion, skipFor } from '../../support/parts.ts';
import { placedBy } from '../../support/rendered-launcher.ts';
import { type RealLauncher, realLaunchers, vector } from '../../support/vectors.ts';
import { CASES_SINCE, minorOf, PARTS_SINCE, RENAMED_LABELS } from '../install-strategy-fixture.ts';
import { type Cases, cpusOf } from '../stage.ts';

interface Operation {
  readonly path: string;
  readonly value: string;
}
const PATCHES = vector<Readonly<Record<string, readonly Operation[]>>>('launcher-patches.json');
export const launcherCases: Cases = (stage) => {
  describe('launchers of 42 different VMs', () => {
    const rendered = new Map<string, KubePod>();
    let minor = 0;

    before(async () => {
      const { client, create, launcher } = stage();
      const { gitVersion } = (await client.get('/apis/subresources.kubevirt.io/v1/version')) as { gitVersion: string };
      minor = minorOf(gitVersion);
      noteVersion('KubeVirt', gitVersion);
      console.log(`      rendered by KubeVirt ${gitVersion}`);
      for (const object of NETWORKS) await create(object);
      // Nothing should run: only the rendered pods are checked.
      await cordon(stage(), true);
      await inParallel(
        realLaunchers().filter((one) => since(one) <= minor),
        async (one) => {
          const vmi = instanceOf(one);
          await create(vmi);
          rendered.set(one.case, await launcher(vmi.metadata.name));
          await client.delete(`/apis/kubevirt.io/v1/namespaces/vms/virtualmachineinstances/${vmi.metadata.name}`);
        },
        8,
      );
      await cordon(stage(), false);
    });

    for (const one of realLaunchers()) {
      it(`${one.case}: is rendered as recorded, with the CPUs of its recorded patch`, function () {
        if (since(one) > minor) {
          skipFor({ name: `KubeVirt 1.${since(one)}`, install: 'bring that release or a newer one' }, this);
        }
        const pod = rendered.get(one.case);
        assert.ok(pod !== undefined, 'it has no launcher');
        const cpus = PATCHES[one.case]?.find(({ path }) => path.endsWith('/limits/cpu'))?.value;
        assert.equal(cpusOf(pod), cpus ?? cpusOf(one.launcher as unknown as KubePod));
        assert.deepEqual(comparable(pod), asRenderedBy(minor, comparable(one.launcher as unknown as KubePod)));
      });
    }
  });
};
const since = (one: RealLauncher) => CASES_SINCE[one.case] ?? 0;
function asRenderedBy(minor: number, launcher: object): object {
  const missing = new Set(Object.entries(PARTS_SINCE).flatMap(([name, first]) => (first > minor ? [name] : [])));
  const text = JSON.stringify(launcher, (key, value: unknown) => {
    if (missing.has(key)) return undefined;
    return Array.isArray(value) ? value.filter((item) => !missing.has(item as string)) : value;
  });
  const renamed = RENAMED_LABELS.filter((label) => label.since > minor);
  return JSON.parse(
    renamed.reduce((json, { label, before }) => json.replaceAll(`"${label}":`, `"${before}":`), text),
  ) as object;
}
async function cordon({ client }: ReturnType<Parameters<Cases>[0]>, unschedulable: boolean): Promise<void> {
  const { items } = (await client.get('/api/v1/nodes')) as { items: { metadata: { name: string } }[] };
  for (const { metadata } of items) {
    const path = `/api/v1/nodes/${metadata.name}`;
    await client.patch(path, 'application/merge-patch+json', { spec: { unschedulable } });
  }
}
/** `vms/dataplane0` is a localnet on physnet0, `vms/dataplane1` on physnet1. */
const NETWORKS: readonly KubeObject[] = ['physnet0', 'physnet1', undefined].map((physnet, index) => {
  const name = physnet === undefined ? 'bridge' : `dataplane${index}`;
  const localnet = { type: 'ovn-k8s-cni-overlay', topology: 'localnet', physicalNetworkName: physnet };
  const config = physnet === undefined ? { type: 'bridge', bridge: 'br1' } : localnet;
  return {
    apiVersion: 'k8s.cni.cncf.io/v1',
    kind: 'NetworkAttachmentDefinition',
    metadata: { name, namespace: 'vms' },
    spec: { config: JSON.stringify({ cniVersion: '1.1.0', name, netAttachDefName: `vms/${name}`, ...config }) },
  };
});
function instanceOf({ vmi }: RealLauncher): KubeObject {
  const {
    name = '',
    namespace,
    annotations,
    labels,
  } = vmi.metadata as { name?: string; namespace: string } & JsonRecord;
  const own = Object.entries((annotations ?? {}) as Record<string, string>).filter(([key]) => !KUBEVIRTS.has(key));
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: {
      name,
      namespace,
      annotations: Object.fromEntries(own),
      labels: (labels ?? {}) as Record<string, string>,
    },
    spec: vmi.spec as JsonRecord,
  };
}
const KUBEVIRTS = new Set([
  'kubevirt.io/latest-observed-api-version',
  'kubevirt.io/storage-observed-api-version',
  'kubevirt.io/vm-generation',
  'kubevirt.io/pci-topology-version',
]);
/** The parts that do not depend on time, VMI and Plumbline: its CPUs are compared separately. */
function comparable(pod: KubePod): object {
  const { metadata, spec } = pod;
  const keys = (map: Readonly<Record<string, string>> = {}) =>
    Object.keys(map)
      .filter((key) => !/plumbline\.dev/.test(key) && !KUBEVIRTS.has(key) && !LATER.has(key))
      .sort();
  const containers = spec.containers.map(withoutCpus);
  const parts = {
    ...placedBy({ ...pod, spec: { ...spec, containers } }),
    annotations: keys(metadata.annotations),
    labels: keys(metadata.labels),
    volumes: ((spec['volumes'] ?? []) as { name: string }[]).map(({ name }) => name),
  };
  return JSON.parse(JSON.stringify(parts)) as object;
}
function withoutCpus(container: Container): Container {
  if (container.name !== 'compute') return container;
  const { requests: { cpu: _, ...requests } = {}, limits: { cpu: __, ...limits } = {} } = container.resources ?? {};
  return { ...container, resources: { requests, limits } };
}
const LATER = new Set([
  'descheduler.alpha.kubernetes.io/request-evict-only',
  'kubevirt.io/migrationTransportUnix',
  'kubevirt.io/nodeName',
]);
