import { useState } from 'preact/hooks';
import { Paint } from '../data/node.ts';
import type { CpuMapProps } from './cpu-map.tsx';
import { ownersOf } from './owners.ts';

/** Every CPU in a separate row, for users who prefer a table to a map; rendered only when opened. */
export function CpuTable({ node, shape }: CpuMapProps) {
  const [open, setOpen] = useState(false);
  return (
    <details class="every-cpu" open={open} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>Every CPU as a table</summary>
      {open && <Rows node={node} shape={shape} />}
    </details>
  );
}

function Rows({ node, shape }: CpuMapProps) {
  const owners = new Map(
    ownersOf(node, shape).flatMap(({ who, about, paint, slots }) =>
      slots.map((slot) => [slot, paint < Paint.inFlight ? about || who : who] as const),
    ),
  );
  return (
    <div class="table-frame">
      <table>
        <caption class="unseen">Every CPU of {node.name}</caption>
        <thead>
          <tr>
            <th scope="col">CPU</th>
            <th scope="col">Core</th>
            <th scope="col">NUMA node</th>
            <th scope="col">Owner</th>
          </tr>
        </thead>
        <tbody>
          {shape.cells.flatMap(({ id, firstCore, cores }) =>
            Array.from({ length: cores }, (_, k) => firstCore + k).flatMap((core) => {
              const { first, threads } = shape.cores[core]!;
              return Array.from({ length: threads }, (_, k) => first + k).map((slot) => (
                <tr key={slot}>
                  <th scope="row">{shape.slots[slot]!.cpu}</th>
                  <td>{shape.slots[first]!.cpu}</td>
                  <td>{id}</td>
                  <td>
                    {owners.get(slot) ?? ''}
                    {node.padding[slot] === 1 ? ' (added for whole cores)' : ''}
                  </td>
                </tr>
              ));
            }),
          )}
        </tbody>
      </table>
    </div>
  );
}
