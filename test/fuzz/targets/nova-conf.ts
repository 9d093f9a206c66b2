import assert from 'node:assert/strict';
import fc from 'fast-check';
import { ParseError } from '../../../model/errors.ts';
import { parseOsloConfig, readNovaConf } from '../../../model/nova-conf/nova-conf.ts';
import { almost, withLong } from '../mutation.ts';
import { fedText, parsedOrRefused, type Target } from '../target.ts';
import { cpuList } from './cpu-set.ts';

const physnet = fc.stringMatching(/^[a-z][-a-z0-9_]{0,8}$/);
const numaNodes = fc.array(fc.nat(1023), { maxLength: 3 }).map((nodes) => nodes.join(', '));
const file = fc
  .record({
    physnets: fc.dictionary(physnet, numaNodes, { maxKeys: 4 }),
    tunnel: fc.option(numaNodes),
    dedicated: fc.option(cpuList),
    shared: fc.option(cpuList),
  })
  .map(({ physnets, tunnel, dedicated, shared }) =>
    [
      '[neutron]',
      `physnets = ${Object.keys(physnets).join(',')}`,
      ...Object.entries(physnets).flatMap(([name, nodes]) => [`[neutron_physnet_${name}]`, `numa_nodes=${nodes}`]),
      ...(tunnel === null ? [] : ['[neutron_tunnel]', `numa_nodes: ${tunnel}`]),
      '# CPUs',
      '[compute]',
      ...(dedicated === null ? [] : [`cpu_dedicated_set = ${dedicated}`]),
      ...(shared === null ? [] : [`cpu_shared_set = "${shared}"`]),
    ].join('\n'),
  );

export const novaConf: Target<string> = {
  name: 'nova-conf',
  about: 'nova.conf gives networks on possible NUMA nodes and non-empty CPU sets, or is refused',
  inputs: withLong(
    almost(file, [
      '[neutron]\nphysnets = a, b\n[neutron_physnet_a]\nnuma_nodes = 0\n  ,1\n[compute]\ncpu_dedicated_set=2-15,^8',
    ]),
    200_000,
    { head: '[a]\n', piece: (i) => `o${i}=1\n` },
    { piece: (i) => `[neutron_physnet_${i}]\nnuma_nodes=0\n` },
    { head: '[neutron]\nphysnets=', piece: (i) => `p${i}`, joint: ',' },
    { head: '[neutron_tunnel]\nnuma_nodes=0\n', piece: ' ,1\n' },
    { head: '[compute]\ncpu_dedicated_set=', piece: (i) => `${i % 2 ? '^' : ''}${i % 9}-65535`, joint: ',' },
  ),
  fed: fedText((text) => readNovaConf(parseOsloConfig([{ name: 'nova.conf', text }]))),
  work: { base: 400_000, each: 20 },
  judge(text) {
    const read = () => readNovaConf(parseOsloConfig([{ name: 'nova.conf', text }]));
    const parsed = parsedOrRefused(read, ParseError);
    if (parsed === undefined) return 'refused';
    const { networks, cpus } = parsed.value;
    const entries = [...Object.values(networks.physnets ?? {}), ...(networks.tunnel ? [networks.tunnel] : [])];
    for (const { numaNodes: nodes } of entries) {
      assert.ok(nodes.every((node) => Number.isInteger(node) && node >= 0 && node <= 1023));
      assert.deepEqual(
        nodes,
        [...new Set(nodes)].sort((a, b) => a - b),
      );
    }
    for (const set of [cpus.dedicated, cpus.shared]) assert.ok(set === undefined || !set.isEmpty);
    return 'accepted';
  },
};
