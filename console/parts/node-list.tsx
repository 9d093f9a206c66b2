import type { ComponentChildren } from 'preact';
import { DPU_TEXT, type NodeItem, PROBLEM_TEXT } from '../data/node.ts';
import { NODE_FILTERS } from '../data/node-list.ts';
import type { DpuState } from '../data/wire.ts';
import { go, nodeQuery } from '../state/route.ts';
import { allNodes, order } from '../state/state.ts';
import { DataAge, OldAge } from './ago.tsx';
import { layout } from './layout.ts';
import { ListControls, sortable } from './list-controls.tsx';
import { MapWidth, MiniMap } from './mini-map.tsx';
import { VirtualGrid } from './virtual-grid.tsx';

export function NodeList({ chosen }: { readonly chosen: string | undefined }) {
  const nodes = order.value;
  const width = layout.value === 'wide' ? MapWidth.wide : MapWidth.usual;
  return (
    <>
      <ListControls
        what="nodes"
        placeholder="Search by node, VM or network"
        query={nodeQuery}
        filters={NODE_FILTERS}
        items={allNodes.value}
        matchCount={nodes.length}
      >
        <Legend />
      </ListControls>
      <VirtualGrid
        label="Nodes"
        columns={[
          sortable(nodeQuery, 'name', 'Node'),
          { key: 'map', title: 'CPUs by NUMA node' },
          sortable(nodeQuery, 'freeCores', 'Free cores'),
          sortable(nodeQuery, 'pods', 'VMs'),
          sortable(nodeQuery, 'problems', 'State'),
        ]}
        items={nodes}
        keyOf={({ name }) => name}
        cells={(node) => cellsOf(node, width)}
        isChosen={({ name }) => name === chosen}
        onChoose={({ name }) => go({ list: 'nodes', chosen: name })}
        empty={<Empty />}
      />
    </>
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

function Legend() {
  return (
    <ul class="legend" aria-label="Colours of the maps">
      <li>
        <span class="swatch is-small p-vm0" />
        <span class="swatch is-small p-vm1" />
        <span class="swatch is-small p-vm2" /> VMs
      </li>
      <li>
        <span class="swatch is-small p-vm0 is-padding" /> added for whole cores
      </li>
      <li>
        <span class="swatch is-small p-held" /> starting
      </li>
      <li>
        <span class="swatch is-small p-polled" /> Open vSwitch
      </li>
      <li>
        <span class="swatch is-small p-reserved" /> reserved
      </li>
      <li>
        <span class="swatch is-small p-free" /> free
      </li>
    </ul>
  );
}

function cellsOf(node: NodeItem, width: number): readonly ComponentChildren[] {
  const { name, shape, freeCores, pods, inFlight } = node;
  return [
    <>
      <span class="name" title={name}>
        {name}
      </span>
      <span class="networks" title={networksOf(node)}>
        {networksOf(node)}
      </span>
    </>,
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

function networksOf({ shape }: NodeItem): string {
  if (shape === undefined) return '';
  const { physnets, tunnel } = shape.content;
  const names = new Map<string, string[]>();
  for (const [name, cells] of [...physnets, ...(tunnel === undefined ? [] : [['tunnel', tunnel] as const])]) {
    names.set(cells, [...(names.get(cells) ?? []), name]);
  }
  return [...names].map(([cells, there]) => `${there.join(', ')} on ${numaText(cells)}`).join('; ');
}

function numaText(cells: string): string {
  if (cells === '') return 'an unknown NUMA node';
  return `NUMA ${/^\d+$/.test(cells) ? 'node' : 'nodes'} ${cells}`;
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
        <span class={`badge ${look}`} title={title}>
          {text}
          <OldAge />
        </span>
        {dpu === 'alive' && <span class="why">DPU ready</span>}
      </>
    );
  }
  return (
    <>
      {problems.map((problem) => (
        <span key={problem} class="badge is-bad" title={PROBLEM_TEXT[problem].long}>
          {PROBLEM_TEXT[problem].short}
          <OldAge />
        </span>
      ))}
      <DataAge since={silentSince} />
    </>
  );
}
