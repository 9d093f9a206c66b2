import assert from 'node:assert/strict';
import { join } from 'node:path';
import { readSettings } from '../../../node-agent/host/kubelet-config-files.ts';
import { createKubeletConfigReader } from '../../../node-agent/host/kubelet-config-reader.ts';
import { recordingLogger, tempDirectories, writeTree } from '../support.ts';
import { parseKubeletConfig } from './kubelet-config-fixture.ts';

const HEAD = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
const KUBECONFIG = 'apiVersion: v1\nkind: Config\nclusters: []\n';

describe('kubelet configuration', () => {
  const temp = tempDirectories();

  it('sums the reserved memory of a NUMA node over all its entries, in bytes', () => {
    const text = `${HEAD}reservedMemory:
- {numaNode: 0, limits: {memory: 1Gi}}
- {numaNode: 1, limits: {memory: 500M, hugepages-2Mi: 4Mi}}
- {numaNode: 0, limits: {hugepages-1Gi: 1Gi}}
`;
    assert.deepEqual(
      [...(parseKubeletConfig('f', text)?.reservedMemory ?? [])],
      [
        [0, { memory: 2 ** 30, 'hugepages-1Gi': 2 ** 30 }],
        [1, { memory: 500_000_000, 'hugepages-2Mi': 2 ** 22 }],
      ],
    );
    assert.deepEqual([...(parseKubeletConfig('f', HEAD)?.reservedMemory ?? [])], []);
    assert.throws(() => parseKubeletConfig('f', `${HEAD}reservedMemory: [{numaNode: 0, limits: {memory: x}}]`), {
      name: 'KubeletConfigError',
      code: 'kubelet-config',
      message: /^f: reservedMemory: /,
    });
  });

  const wrong: [string, string, RegExp][] = [
    ['a kubeconfig', KUBECONFIG, /^f: a kubeconfig, not a KubeletConfiguration$/],
    ['another kind', 'kind: Other', /^f: not a KubeletConfiguration: /],
    ['no apiVersion', 'kind: KubeletConfiguration\n', /^f: not a KubeletConfiguration: /],
    ['an empty first document', `---\n---\n${HEAD}`, /^f: not a KubeletConfiguration: /],
    ['broken YAML', `${HEAD}cpuManagerPolicy: [`, /^f: .*at line 3/],
    ['braces that are not JSON', '{kind: KubeletConfiguration}', /^f: .*JSON/],
    ['binary data', `${HEAD}\0\ufffd`, /^f: not text/],
    ['reserved CPUs that are not a CPU list', `${HEAD}reservedSystemCPUs: x`, /^f: reservedSystemCPUs: /],
    ['a wrong type', `${HEAD}cpuManagerPolicyOptions: {full-pcpus-only: true}`, /^f: .*cpuManagerPolicyOptions/],
  ];
  for (const [what, text, message] of wrong) {
    it(`refuses ${what}`, () =>
      assert.throws(() => parseKubeletConfig('f', text), { name: 'KubeletConfigError', message }));
  }

  it('ends with its first document, as for the kubelet', () => {
    const config = parseKubeletConfig('f', `${HEAD}maxPods: 5\n---\ntopologyManagerPolicy: [none\n`);
    assert.equal(config.maxPods, 5);
  });

  it('has between 1 and 10000 pods, or the kubelet’s default of 110', () => {
    const maxPodsOf = (text: string) => parseKubeletConfig('f', `${HEAD}${text}\n`)?.maxPods;
    const texts = ['', 'maxPods: 0', 'maxPods: -5', 'maxPods: null', 'maxPods: 1', 'maxPods: 10000', 'maxPods: 10001'];
    assert.deepEqual(texts.map(maxPodsOf), [110, 110, 110, 110, 1, 10_000, 10_000]);
  });

  it('refuses a directory of thousands of files', async () => {
    const root = temp();
    writeTree(root, { config: HEAD });
    const dropIns = Array.from({ length: 300 }, (_, i) => [`conf.d/${i}.conf`, `${HEAD}maxPods: 1`]);
    writeTree(root, Object.fromEntries(dropIns));
    const all = { config: '/config', configDir: '/conf.d', root };
    await assert.rejects(readSettings(all), { message: '/conf.d: more than 256 drop-ins' });
  });

  it('skips a kubeconfig in its place, and says so once', async () => {
    const root = temp();
    writeTree(root, { 'kubelet.conf': KUBECONFIG });
    const { log, lines } = recordingLogger();
    const read = createKubeletConfigReader({ kubeletDir: root, config: join(root, 'kubelet.conf') }, log);
    const { config, problems } = await read();
    assert.equal(config, undefined);
    assert.match(problems.join(), /kubelet.conf: a kubeconfig, not a KubeletConfiguration; allow nodes\/configz/);
    const before = lines.length;
    await read();
    assert.equal(lines.length, before);
    assert.ok(lines.some(({ reason }) => /a kubeconfig, not a KubeletConfiguration/.test(String(reason))));
  });
});
