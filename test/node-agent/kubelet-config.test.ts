import assert from 'node:assert/strict';
import { join } from 'node:path';
import { KubeletConfigError, parseKubeletConfig } from '../../node-agent/host/kubelet-config.ts';
import { findKubeletConfig } from '../../node-agent/host/kubelet-config-files.ts';
import { createKubeletConfigReader } from '../../node-agent/host/kubelet-config-reader.ts';
import { recordingLogger, tempDirectories, writeTree } from './support.ts';

const HEAD = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
const KUBECONFIG = 'apiVersion: v1\nkind: Config\nclusters: []\n';

describe('kubelet configuration', () => {
  const temp = tempDirectories();

  it('reads policies, options and reserved CPUs', () => {
    const config = parseKubeletConfig(
      'f',
      `${HEAD}cpuManagerPolicy: static
cpuManagerPolicyOptions: {full-pcpus-only: "true", distribute-cpus-across-numa: false}
topologyManagerPolicy: single-numa-node
topologyManagerScope: pod
memoryManagerPolicy: Static
reservedSystemCPUs: "0-1,3"
`,
    );
    assert.deepEqual(config?.cpuManager, {
      policy: 'static',
      options: { 'full-pcpus-only': 'true', 'distribute-cpus-across-numa': 'false' },
    });
    assert.deepEqual(config.topologyManager, { policy: 'single-numa-node', scope: 'pod', options: {} });
    assert.deepEqual(config.memoryManager, { policy: 'Static' });
    assert.equal(config.reserved?.toString(), '0-1,3');
  });

  it('has the kubelet’s own defaults', () => {
    const config = parseKubeletConfig('f', HEAD);
    assert.deepEqual(config?.cpuManager, { policy: 'none', options: {} });
    assert.deepEqual(config.topologyManager, { policy: 'none', scope: 'container', options: {} });
    assert.equal(config.reserved, undefined, 'amounts or nothing: not known from here');
  });

  const wrong: [string, string, RegExp][] = [
    [
      'reserved CPUs that are no list',
      `${HEAD}reservedSystemCPUs: not-a-valid-range`,
      /reservedSystemCPUs.*not-a-valid-/,
    ],
    ['broken YAML', `${HEAD}cpuManagerPolicy: [`, /not YAML/],
    ['something else', 'just text', /KubeletConfiguration/],
    ['an empty file', '', /KubeletConfiguration/],
    ['another kind', 'kind: Deployment', /KubeletConfiguration/],
  ];
  for (const [name, text, message] of wrong) {
    it(`${name}: an error that names the file`, () => {
      assert.throws(
        () => parseKubeletConfig('/some/file', text),
        (error) =>
          error instanceof KubeletConfigError && message.test(error.message) && /some\/file/.test(error.message),
      );
    });
  }

  it('passes over a kubeconfig in its place, with a log line, and takes the next', async () => {
    const root = temp();
    writeTree(root, { 'kubelet.conf': KUBECONFIG, 'config.yaml': `${HEAD}cpuManagerPolicy: static` });
    const candidates = [join(root, 'kubelet.conf'), join(root, 'config.yaml')];
    const findings = await findKubeletConfig(candidates);
    assert.deepEqual(
      findings.map(({ kind }) => kind),
      ['kubeconfig', 'found'],
    );
    const { log, lines } = recordingLogger();
    const read = createKubeletConfigReader({ candidates }, log);
    assert.equal((await read()).config?.cpuManager.policy, 'static');
    const before = lines.length;
    await read();
    assert.equal(lines.length, before, 'says it once');
    assert.ok(lines.some(({ msg }) => /is a kubeconfig, not a KubeletConfiguration/.test(String(msg))));
  });

  it('none: tells why for each place looked at', async () => {
    const root = temp();
    writeTree(root, { broken: 'kind: [' });
    const { log } = recordingLogger();
    const { config, problems } = await createKubeletConfigReader(
      { candidates: [join(root, 'gone'), join(root, 'broken')] },
      log,
    )();
    assert.equal(config, undefined);
    assert.equal(problems.length, 2);
    assert.match(problems[0] ?? '', /--kubelet-config/);
  });
});
