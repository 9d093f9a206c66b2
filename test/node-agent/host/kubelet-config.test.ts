import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { advertisedResources, devicesOf } from '../../../node-agent/device-plugin/resources.ts';
import { KubeletConfigError } from '../../../node-agent/host/kubelet-config.ts';
import { readSettings } from '../../../node-agent/host/kubelet-config-files.ts';
import { createKubeletConfigReader } from '../../../node-agent/host/kubelet-config-reader.ts';
import { processorTime } from '../../support/processor-time.ts';
import { recordingLogger, tempDirectories, writeTree } from '../support.ts';
import { parseKubeletConfig } from './kubelet-config-fixture.ts';

const HEAD = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
const KUBECONFIG = 'apiVersion: v1\nkind: Config\nclusters: []\n';

describe('kubelet configuration', () => {
  const temp = tempDirectories();

  it('reads policies, options and reserved CPUs', () => {
    const config = parseKubeletConfig(
      'f',
      `${HEAD}cpuManagerPolicy: static
cpuManagerPolicyOptions: {full-pcpus-only: "true", distribute-cpus-across-numa: "false"}
topologyManagerPolicy: single-numa-node
topologyManagerScope: pod
memoryManagerPolicy: Static
reservedSystemCPUs: "0-1,3"
featureGates: {PodLevelResourceManagers: true, InPlacePodVerticalScalingExclusiveCPUs: false, NodeSwap: true}
`,
    );
    assert.deepEqual(config?.featureGates, {
      PodLevelResourceManagers: true,
      InPlacePodVerticalScalingExclusiveCPUs: false,
    });
    assert.deepEqual(config?.cpuManager, {
      policy: 'static',
      options: { 'full-pcpus-only': 'true', 'distribute-cpus-across-numa': 'false' },
    });
    assert.deepEqual(config.topologyManager, { policy: 'single-numa-node', scope: 'pod', options: {} });
    assert.deepEqual(config.memoryManager, { policy: 'Static' });
    assert.equal(config.reserved?.toString(), '0-1,3');
  });

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

  it('refuses any other kind and impossible values with the path', () => {
    for (const [text, says] of [
      [KUBECONFIG, /^f: a kubeconfig, not a KubeletConfiguration$/],
      ['kind: Other', /^f: not a KubeletConfiguration: /],
      ['null', /^f: not a KubeletConfiguration: /],
      [`${HEAD}reservedSystemCPUs: x`, /^f: reservedSystemCPUs: /],
    ] as const) {
      assert.throws(() => parseKubeletConfig('f', text), { name: 'KubeletConfigError', message: says });
    }
  });

  const pods: [string, number][] = [
    ['', 110],
    ['maxPods: 0', 110],
    ['maxPods: -5', 110],
    ['maxPods: 1', 1],
    ['maxPods: 250', 250],
    ['maxPods: 10000', 10_000],
    ['maxPods: 10001', 10_000],
    ['maxPods: null', 110],
  ];
  for (const [text, maxPods] of pods) {
    it(`${text || 'no maxPods'}: ${maxPods}`, () =>
      assert.equal(parseKubeletConfig('f', `${HEAD}${text}\n`)?.maxPods, maxPods));
  }

  it('reads up to 32 options and resources and 1024 NUMA nodes, and refuses more', () => {
    const many = (count: number, value: string) =>
      `{${Array.from({ length: count }, (_, i) => `k${i}: ${value}`).join(', ')}}`;
    const nodes = (count: number) =>
      `[${Array.from({ length: count }, (_, i) => `{numaNode: ${i}, limits: {}}`).join(', ')}]`;
    const texts: [(count: number) => string, number][] = [
      [(count) => `cpuManagerPolicyOptions: ${many(count, '"true"')}`, 32],
      [(count) => `topologyManagerPolicyOptions: ${many(count, '"x"')}`, 32],
      [(count) => `reservedMemory: [{numaNode: 0, limits: ${many(count, '1')}}]`, 32],
      [(count) => `reservedMemory: ${nodes(count)}`, 1024],
    ];
    for (const [text, most] of texts) {
      assert.ok(parseKubeletConfig('f', `${HEAD}${text(most)}\n`));
      assert.throws(() => parseKubeletConfig('f', `${HEAD}${text(most + 1)}\n`), KubeletConfigError);
    }
  });

  it('has the kubelet’s own defaults', () => {
    const config = parseKubeletConfig('f', HEAD);
    assert.deepEqual(config?.cpuManager, { policy: 'none', options: {} });
    assert.deepEqual(config.topologyManager, { policy: 'none', scope: 'container', options: {} });
    assert.equal(config.reserved, undefined, 'amounts or nothing: not known from here');
  });

  describe('with any text', () => {
    const nested: [string, string][] = [
      ['brackets', '['.repeat(60_000)],
      ['braces', '{a: '.repeat(15_000)],
      ['dashes', '- '.repeat(30_000)],
      ['question marks', '? '.repeat(30_000)],
      ['indentation', Array.from({ length: 300 }, (_, i) => `${' '.repeat(i)}a:`).join('\n')],
    ];
    for (const [what, text] of nested) {
      it(`refuses endless ${what} before it parses them, because a stack overflow can end the process`, () => {
        assert.throws(() => parseKubeletConfig('f', text), { message: 'f: nested too deeply' });
      });
    }

    const growing: [string, (size: number) => string][] = [
      ['keys', (size) => Array.from({ length: size / 8 }, (_, i) => `k${i}: 1`).join('\n')],
      ['keys within braces', (size) => `{${Array.from({ length: size / 8 }, (_, i) => `k${i}: 1`).join(', ')}}`],
      ['tags', (size) => '!!a '.repeat(size / 4)],
      ['aliases', (size) => `a: &a [x]\n${Array.from({ length: size / 8 }, (_, i) => `b${i}: *a`).join('\n')}`],
      ['documents', (size) => '---\n'.repeat(size / 4)],
    ];
    for (const [what, make] of growing) {
      it(`needs about four times the CPU time for four times the text: ${what}`, () => {
        const cost = (text: string) =>
          processorTime(() => {
            try {
              parseKubeletConfig('f', text);
            } catch (error) {
              assert.ok(error instanceof KubeletConfigError && error.message.length < 500);
            }
          });
        cost(make(8_000));
        const [small, large] = [cost(make(16_000)), cost(make(64_000))];
        assert.ok(large < 10 * small + 150, `${small} ms and ${large} ms`);
      });
    }

    it('reports a duplicate key, long names and too much text with short errors', () => {
      const long = 'x'.repeat(10_000);
      for (const [text, says] of [
        [`${HEAD}maxPods: 1\nmaxPods: 2`, /the key "maxPods" appears twice at line 4, column 1/],
        [`${HEAD}${long.slice(0, 500)}: 1\n${long.slice(0, 500)}: 2`, /appears twice/],
        [`${HEAD}a: *${long}`, /^f: /],
        [`${HEAD}cpuManagerPolicy: ${long}`, /cpuManagerPolicy/],
        [`${HEAD}cpuManagerPolicyOptions: {${long}: ''}`, /cpuManagerPolicyOptions/],
        [`${HEAD}reservedMemory: [{numaNode: 0, limits: {memory: ${long}}}]`, /reservedMemory/],
        [`# ${long.repeat(20)}`, /more than 65536 characters/],
      ] as const) {
        assert.throws(
          () => parseKubeletConfig('f', text),
          (error) => error instanceof KubeletConfigError && says.test(error.message) && error.message.length < 500,
          text.slice(0, 100),
        );
      }
    });

    it('limits maxPods to the number of devices that a resource can have', () => {
      assert.equal(parseKubeletConfig('f', `${HEAD}maxPods: 2147483647`)?.maxPods, 10_000);
      assert.equal(parseKubeletConfig('f', `${HEAD}maxPods: -5`)?.maxPods, 110);
      const [resource] = advertisedResources({ physnets: new Map(), tunnel: undefined }, 2_147_483_647);
      assert.ok(resource !== undefined && devicesOf(resource).length === 10_000);
    });

    it('refuses a pipe, a device, a large file and a directory of thousands of files without blocking', async () => {
      const directory = temp();
      execFileSync('mkfifo', [join(directory, 'pipe')]);
      symlinkSync('/dev/zero', join(directory, 'zero'));
      writeFileSync(join(directory, 'large'), `${HEAD}#${'x'.repeat(1024 * 1024)}`);
      for (const [name, says] of [
        ['pipe', /not a regular file/],
        ['zero', /not a regular file/],
        ['large', /larger than 65536 bytes/],
      ] as const) {
        await assert.rejects(readSettings({ config: `/${name}`, root: directory }), says);
      }
      writeTree(directory, { config: HEAD });
      writeTree(
        directory,
        Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`conf.d/${i}.conf`, `${HEAD}maxPods: 1`])),
      );
      const all = { config: '/config', configDir: '/conf.d', root: directory };
      await assert.rejects(readSettings(all), { message: '/conf.d: more than 256 drop-ins' });
    });
  });

  const wrong: [string, string, RegExp][] = [
    [
      'reserved CPUs that are not a CPU list',
      `${HEAD}reservedSystemCPUs: not-a-valid-range`,
      /reservedSystemCPUs.*not-a-valid-/,
    ],
    ['broken YAML', `${HEAD}cpuManagerPolicy: [`, /at line 3/],
    ['something else', 'just text', /KubeletConfiguration/],
    ['an empty file', '', /KubeletConfiguration/],
    ['another kind', 'kind: Deployment', /KubeletConfiguration/],
  ];
  for (const [name, text, message] of wrong) {
    it(`names the file in the error about ${name}`, () => {
      assert.throws(
        () => parseKubeletConfig('/some/file', text),
        (error) =>
          error instanceof KubeletConfigError && message.test(error.message) && /some\/file/.test(error.message),
      );
    });
  }

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
