import type { ComponentChildren } from 'preact';
import { DPU_TEXT, type NodeItem, PROBLEM_TEXT } from '../data/node.ts';
import type { DpuState } from '../data/wire.ts';
import { lists } from '../state/route.ts';
import { allNodes, matchingNodes } from '../state/state.ts';
import { DataAge } from './ago.tsx';
import { Badge, Name } from './detail.tsx';
import { List } from './list.tsx';
import { MapWidth, MiniMap } from './mini-map.tsx';
import { layout } from './virtual-grid.tsx';

export function NodeList({ chosen }: { readonly chosen: string | undefined }) {
  const width = layout.value === 'wide' ? MapWidth.wide : MapWidth.usual;
  return (
    <List
      name="nodes"
      label="Nodes"
      what="nodes"
      placeholder="Search by node, VM or network"
      state={lists.nodes}
      items={allNodes.value}
      matching={matchingNodes.value}
      columns={{ name: 'Node', map: 'CPUs by NUMA node', freeCores: 'Free cores', pods: 'VMs', problems: 'State' }}
      keyOf={({ name }) => name}
      nameOf={({ name }) => name}
      cells={(node) => cellsOf(node, width)}
      chosen={chosen}
      empty={<Empty />}
    >
      <Legend />
    </List>
  );
}

function Empty() {
  if (allNodes.value.length > 0) return <>No node matches. Clear the search or choose “All nodes”.</>;
  return (
    <>
      No node reports. Check the agent's DaemonSet: <code>plumbline doctor agents</code> shows what is missing.
    </>
  );
}

const LEGEND: readonly (readonly [text: string, ...looks: string[]])[] = [
  ['VMs', 'p-vm0', 'p-vm1', 'p-vm2'],
  ['added for whole cores', 'p-vm0 is-padding'],
  ['starting', 'p-held'],
  ['Open vSwitch', 'p-polled'],
  ['reserved', 'p-reserved'],
  ['free', 'p-free'],
];

function Legend() {
  return (
    <ul class="legend" aria-label="Colours of the maps">
      {LEGEND.map(([text, ...looks]) => (
        <li key={text}>
          {looks.map((look) => (
            <span key={look} class={`swatch is-small ${look}`} />
          ))}{' '}
          {text}
        </li>
      ))}
    </ul>
  );
}

function cellsOf(node: NodeItem, width: number): readonly ComponentChildren[] {
  const { name, shape, freeCores, pods, inFlight } = node;
  return [
    <Name key="name" name={name} below={networksOf(node)} title={networksOf(node)} />,
    <MiniMap key="map" node={node} width={width} />,
    shape && (
      <>
        <span class="number">{freeCores}</span> <span class="of">of {shape.cores.length}</span>
      </>
    ),
    <>
      <span class="number">{pods}</span>
      {inFlight.length > 0 && <span class="of"> +{inFlight.length} starting</span>}
    </>,
    <State key="state" node={node} />,
  ];
}

const numaText = (cells: string) =>
  cells === '' ? 'an unknown NUMA node' : `NUMA ${/^\d+$/.test(cells) ? 'node' : 'nodes'} ${cells}`;

function networksOf({ shape }: NodeItem): string {
  const { physnets = [], tunnel } = shape?.content ?? {};
  const networks = tunnel === undefined ? physnets : [...physnets, ['tunnel', tunnel] as const];
  const names = new Map<string, string[]>();
  for (const [name, cells] of networks) names.set(cells, [...(names.get(cells) ?? []), name]);
  return [...names].map(([cells, there]) => `${there.join(', ')} on ${numaText(cells)}`).join('; ');
}

const NO_AGENT = { text: 'No VMs', look: 'is-stopped', title: 'KubeVirt starts no VMs here, so no agent reports.' };

const HEALTHY: Readonly<Record<DpuState, { text: string; look: string; title?: string }>> = {
  '': { text: 'Healthy', look: 'is-good' },
  alive: { text: 'Healthy', look: 'is-good' },
  dead: { text: 'DPU not ready', look: 'is-bad' },
  unknown: { text: 'DPU unknown', look: 'is-waiting', title: DPU_TEXT.unknown },
};

function State({ node: { shape, problems, dpu, silentSince } }: { readonly node: NodeItem }) {
  if (problems.length === 0) {
    const { text, look, title } = shape === undefined ? NO_AGENT : HEALTHY[dpu];
    return (
      <>
        <Badge look={look} title={title} text={text} />
        {dpu === 'alive' && <span class="why">DPU ready</span>}
      </>
    );
  }
  return (
    <>
      {problems.map((problem) => (
        <Badge key={problem} look="is-bad" title={PROBLEM_TEXT[problem].long} text={PROBLEM_TEXT[problem].short} />
      ))}
      <DataAge since={silentSince} />
    </>
  );
}
