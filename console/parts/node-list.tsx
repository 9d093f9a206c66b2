import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { type NodeItem, PROBLEM_TEXT } from '../data/node.ts';
import type { NodeFilter } from '../data/node-list.ts';
import { go, nodeQuery, route } from '../state/route.ts';
import { order, totals } from '../state/state.ts';
import { ListControls, sortable } from './list-controls.tsx';
import { MapWidth, MiniMap } from './mini-map.tsx';
import { type Column, VirtualGrid } from './virtual-grid.tsx';

const FILTERS: Readonly<Record<NodeFilter, string>> = {
  all: 'All nodes',
  problems: 'Need attention',
  'in-use': 'With VMs',
  'in-flight': 'VMs in flight',
  dpu: 'With a DPU',
};

/** Every node as a row with its CPU map, with search and order; only visible rows are rendered. */
export function NodeList({ chosen }: { readonly chosen: string | undefined }) {
  const nodes = order.value;
  const width = wide.value && route.value.chosen === undefined ? MapWidth.wide : MapWidth.usual;
  return (
    <>
      <ListControls
        what="nodes"
        placeholder="Search by node, VM or network"
        query={nodeQuery}
        filters={FILTERS}
        found={nodes.length}
        all={totals.value.nodes}
      >
        <Legend />
      </ListControls>
      <VirtualGrid
        label="Nodes"
        columns={columns()}
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
  if (totals.value.nodes > 0) return <>No node matches. Clear the search or choose “All nodes”.</>;
  return (
    <>
      No node reports. Check the agent's DaemonSet: <code>kubectl plumbline doctor</code> shows what is missing.
    </>
  );
}

/** The meaning of the maps' colours; the letters of a node's own map have the same meaning. */
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
        <span class="swatch is-small p-held" /> in flight
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

function columns(): readonly Column[] {
  return [
    sortable(nodeQuery, 'name', 'Node'),
    { key: 'map', title: 'CPUs by NUMA node' },
    sortable(nodeQuery, 'freeCores', 'Free cores'),
    sortable(nodeQuery, 'pods', 'VMs'),
    sortable(nodeQuery, 'problems', 'State'),
  ];
}

function cellsOf(node: NodeItem, width: number): readonly ComponentChildren[] {
  const { name, shape, freeCores, pods, inFlight: held } = node;
  return [
    <>
      <span class="name">{name}</span>
      {/* Also as text, for widths without the column. */}
      {node.problems.length > 0 && (
        <span class="instead">
          <State node={node} />
        </span>
      )}
      <span class="networks">{networksOf(node)}</span>
    </>,
    <MiniMap key="map" node={node} width={width} />,
    shape && (
      <>
        <span class="number">{freeCores}</span> <span class="of">of {shape.cores.length}</span>
      </>
    ),
    <>
      <span class="number">{pods}</span>
      {held.length > 0 && <span class="of"> +{held.length} in flight</span>}
    </>,
    <State key="state" node={node} />,
  ];
}

function networksOf({ shape }: NodeItem): string {
  if (shape === undefined) return '';
  const { physnets, tunnel } = shape.content;
  const places = (cells: string) => (cells === '' ? '?' : cells);
  return [
    ...physnets.map(([name, cells]) => `${name} @ ${places(cells)}`),
    ...(tunnel === undefined ? [] : [`tunnel @ ${places(tunnel)}`]),
  ].join(' · ');
}

function State({ node: { problems, dpu } }: { readonly node: NodeItem }) {
  if (problems.length > 0) {
    return (
      <>
        {problems.map((problem) => (
          <span key={problem} class="badge is-bad" title={PROBLEM_TEXT[problem].long}>
            {PROBLEM_TEXT[problem].short}
          </span>
        ))}
      </>
    );
  }
  return <span class="badge is-good">{dpu === '' ? 'well' : `DPU ${dpu}`}</span>;
}

const media = matchMedia('(width > 1500px)');

/** Whether there is room for large maps in the list. */
export const wide = signal(media.matches);
media.addEventListener('change', ({ matches }) => {
  wide.value = matches;
});
