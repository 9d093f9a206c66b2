import assert from 'node:assert/strict';
import fc from 'fast-check';
import { CpuSet } from '../../../model/cpu-set.ts';
import { KubeletConfigError } from '../../../node-agent/host/kubelet-config.ts';
import { parseKubeletConfig } from '../../node-agent/host/kubelet-config-fixture.ts';
import { almost, withLong } from '../mutation.ts';
import { parsedOrRefused, type Target } from '../target.ts';
import { cpuList } from './cpu-set.ts';

const API = 'kubelet.config.k8s.io/v1beta1';
const HEAD = `apiVersion: ${API}\nkind: KubeletConfiguration\n`;
const file = fc
  .record(
    {
      cpuManagerPolicy: fc.constantFrom('none', 'static'),
      cpuManagerPolicyOptions: fc.dictionary(fc.constantFrom('full-pcpus-only', 'a'), fc.constantFrom('true', 'false')),
      topologyManagerScope: fc.constantFrom('pod', 'container'),
      reservedSystemCPUs: cpuList,
      maxPods: fc.nat(500),
    },
    { requiredKeys: [] },
  )
  // JSON is YAML.
  .map((content) => JSON.stringify({ apiVersion: API, kind: 'KubeletConfiguration', ...content }));

export const kubeletConfig: Target<string> = {
  name: 'kubelet-config',
  about: 'the kubelet’s configuration is read without invented values, or refused with a short message',
  inputs: withLong(
    almost(file, [
      `${HEAD}cpuManagerPolicy: static\ncpuManagerPolicyOptions: {full-pcpus-only: "true"}\nreservedSystemCPUs: 0-1\n`,
      `${HEAD}reservedMemory:\n- numaNode: 0\n  limits: &a {memory: 1Gi}\n- numaNode: 1\n  limits: *a\n`,
    ]),
    // Half of the maximum length, because YAML takes time.
    64 * 1024,
    ...['- a\n', '- - - a\n', '- &a a\n', '- *a\n', '- {}\n', '#\n', '? a\n'].map((piece) => ({
      head: `${HEAD}x:\n`,
      piece,
    })),
    { head: `${HEAD}x: [`, piece: 'a', joint: ',', tail: ']\n' },
    { head: `${HEAD}x: [`, piece: '[],{}', joint: ',', tail: ']\n' },
    { head: HEAD, piece: (i) => `k${i}: 1\n` },
    { head: `${HEAD}x: >\n`, piece: '  a\n' },
    { head: `${HEAD}x: "`, piece: '\\x41', tail: '"\n' },
    { head: `${HEAD}reservedSystemCPUs: `, piece: (i) => `${i % 9}-65535`, joint: ',' },
  ),
  judge(text) {
    const parsed = parsedOrRefused(() => parseKubeletConfig('f', text), KubeletConfigError);
    if (parsed === undefined) return 'refused';
    const { value: config } = parsed;
    if (config === undefined) return 'accepted';
    assert.ok(config.maxPods >= 1 && config.maxPods <= 10_000);
    assert.ok(Object.keys(config.cpuManager.options).length <= 32);
    if (config.reserved !== undefined) assert.ok(CpuSet.parse(config.reserved.toString()).equals(config.reserved));
    return 'accepted';
  },
};
