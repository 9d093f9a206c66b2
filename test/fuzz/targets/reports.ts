import assert from 'node:assert/strict';
import fc from 'fast-check';
import { ZodError } from 'zod';
import { nodeTopologyStatus } from '../../../kube/node-topology.ts';
import { CpuSet } from '../../../model/cpu-set.ts';
import { PlumblineError } from '../../../model/errors.ts';
import { preparedHost } from '../../../model/placement/needs.ts';
import { parseCheckpoint } from '../../../node-agent/assignments/checkpoint.ts';
import { parsedOrRefused, type Target } from '../engine.ts';
import { almost, withLong } from '../mutation.ts';
import { cpuList } from './cpus.ts';

const REPORT = {
  kubeletVersion: 'v1.36.2',
  cells: [
    { id: 0, cpus: '0-7' },
    { id: 1, cpus: '8-15' },
  ],
  cores: Array.from({ length: 8 }, (_, core) => `${core * 2}-${core * 2 + 1}`),
  reserved: '0-1',
  cpuManager: { policy: 'static', options: { 'full-pcpus-only': 'true' } },
  topologyManager: { policy: 'best-effort', scope: 'container' },
  assignments: [{ podUID: 'u', container: 'c', cpus: '2-3' }],
};
const cpus = fc
  .tuple(fc.nat(15), fc.nat(3))
  .map(([first, more]) => (more === 0 ? `${first}` : `${first}-${first + more}`));
const cells = fc.constantFrom('', '0', '0-1', '1', '0-1023');
const report = fc
  .record(
    {
      reserved: cpus,
      assignments: fc.array(
        fc.record({ podUID: fc.constantFrom('a', 'b'), container: fc.constantFrom('c', 'd'), cpus }),
        { maxLength: 4 },
      ),
      physnets: fc.array(fc.record({ name: fc.constantFrom('east', 'west'), cells }), { maxLength: 3 }),
      tunnel: fc.record({ cells }),
      pmdCPUs: cpus,
      uncores: fc.array(fc.record({ id: fc.nat(3), cpus }), { maxLength: 2 }),
      memoryManager: fc.constantFrom({ policy: 'None' }, { policy: 'Static', cells: [{ id: 0, memory: 1 }] }),
      distances: fc.constant({ 0: [10, 20], 1: [20, 10] }),
    },
    { requiredKeys: [] },
  )
  .map((parts) => JSON.stringify({ ...REPORT, ...parts }));
/** The text before and after a list of the report, such as `"cores":[@]`. */
function around(list: object): { readonly head: string; readonly tail: string } {
  const [head = '', tail = ''] = JSON.stringify({ ...REPORT, ...list }).split('"@"');
  return { head, tail };
}
function prepared(text: string) {
  return preparedHost(nodeTopologyStatus.parse(JSON.parse(text)));
}
export const nodeReport: Target<string> = {
  name: 'node-report',
  about: 'reports of agents give a host with the CPUs of its NUMA nodes, or are refused with a short message',
  inputs: withLong(
    almost(report, [JSON.stringify(REPORT)]),
    200_000,
    { ...around({ cores: ['@'] }), piece: (i) => `"${i * 2}-${i * 2 + 1}"`, joint: ',' },
    { ...around({ cores: ['@'] }), piece: '"0-7"', joint: ',' },
    { ...around({ cells: ['@'] }), piece: (i) => `{"id":${i},"cpus":"${i}"}`, joint: ',' },
    { ...around({ uncores: ['@'] }), piece: (i) => `{"id":${i},"cpus":"${i % 16}"}`, joint: ',' },
    {
      ...around({ assignments: ['@'] }),
      piece: (i) => `{"podUID":"u${i}","container":"c","cpus":"${i % 16}"}`,
      joint: ',',
    },
    { ...around({ assignments: ['@'] }), piece: '{"podUID":"u","container":"c","cpus":"65535"}', joint: ',' },
    { ...around({ physnets: ['@'] }), piece: (i) => `{"name":"p${i}","cells":"0-1023"}`, joint: ',' },
  ),
  judge(text) {
    try {
      const { host, reserved, networks } = prepared(text);
      const sent = nodeTopologyStatus.parse(JSON.parse(text));
      assert.ok(host.online.equals(CpuSet.union(sent.cells.map((cell) => CpuSet.parse(cell.cpus)))));
      assert.ok(reserved.isSubsetOf(host.online));
      assert.equal(networks.physnets.size, new Set((sent.physnets ?? []).map(({ name }) => name)).size);
      return 'accepted';
    } catch (error) {
      if (error instanceof SyntaxError || error instanceof ZodError) return 'refused';
      assert.ok(error instanceof PlumblineError || error instanceof RangeError, String(error));
      assert.ok(error.message.length > 0 && error.message.length <= 1500, `${error.message.length} characters`);
      return 'refused';
    }
  },
};

const uid = fc.uuid();
const containers = fc.dictionary(fc.constantFrom('compute', 'sidecar', 'init'), cpuList, { maxKeys: 3 });
const file = fc
  .record(
    {
      policyName: fc.constantFrom('static', 'none'),
      defaultCpuSet: cpuList,
      entries: fc.dictionary(uid, containers, { maxKeys: 4 }),
      podEntries: fc.dictionary(uid, fc.oneof(cpuList, fc.record({ cpuSet: cpuList })), { maxKeys: 2 }),
      checksum: fc.nat(),
    },
    { requiredKeys: ['policyName', 'defaultCpuSet'] },
  )
  .map((content) => JSON.stringify(content));
const HEAD = '{"policyName":"static","defaultCpuSet":"0","entries":{';
export const checkpoint: Target<string> = {
  name: 'cpu-manager-state',
  about: 'the kubelet’s checkpoint gives the owners of its entries, without invented ones',
  inputs: withLong(
    almost(file, ['{"policyName":"static","defaultCpuSet":"0-1","entries":{"a":{"c":"2-3"}},"checksum":1}']),
    200_000,
    { head: `${HEAD}"a":{`, piece: (i) => `"c${i}":"${i}"`, joint: ',', tail: '}}}' },
    { head: HEAD, piece: (i) => `"p${i}":{"c":"65535"}`, joint: ',', tail: '}}' },
    { head: HEAD, piece: (i) => `"p${i}":{}`, joint: ',', tail: '}}' },
    { head: `${HEAD}"a":{"c":"`, piece: '0-65535', joint: ',', tail: '"}}}' },
    { head: HEAD, piece: '"a":{', closing: '}', tail: '}}' },
  ),
  judge(text) {
    const parsed = parsedOrRefused(() => parseCheckpoint(text), 'CheckpointError');
    if (parsed === undefined) return 'refused';
    const { entries, owned, defaultCpus, policy } = parsed.value;
    const content = JSON.parse(text) as {
      policyName: string;
      defaultCpuSet: string;
      entries?: Record<string, Record<string, string>>;
    };
    assert.equal(policy, content.policyName);
    assert.ok(defaultCpus.equals(CpuSet.parse(content.defaultCpuSet)));
    const named = Object.entries(content.entries ?? {}).flatMap(([pod, list]) =>
      Object.entries(list).filter(([, cpus]) => cpus.trim() !== '' && pod !== ''),
    );
    assert.ok(entries.length >= named.length, 'an entry is missing');
    for (const { cpus } of entries) assert.ok(!cpus.isEmpty && cpus.isSubsetOf(owned));
    const sum = new Set(entries.flatMap(({ cpus }) => [...cpus]));
    assert.equal(owned.size, sum.size);
    return 'accepted';
  },
};
