import { formatCpus } from '../data/cpu-list.ts';
import { DPU_TEXT, type NodeItem, PROBLEM_TEXT } from '../data/node.ts';
import type { Shape } from '../data/shape.ts';
import { nodeChanges, ready, store } from '../state/state.ts';
import { CpuMap } from './cpu-map.tsx';
import { CpuTable } from './cpu-table.tsx';
import { Detail } from './detail.tsx';
import { markOf, ownersOf, paintName } from './owners.ts';

/** All that is known of one node: its CPUs as a map and in words. */
export function NodeDetail({ name }: { readonly name: string }) {
  nodeChanges.value;
  const node = store.nodeNamed(name);
  return (
    <Detail title={name} kind="Node" back={{ list: 'nodes' }}>
      {node === undefined ? (
        <p>{ready.value ? 'There is no such node any more.' : 'Loading …'}</p>
      ) : (
        <>
          {node.problems.map((problem) => (
            <p key={problem} class="problem">
              <strong>{PROBLEM_TEXT[problem].short}.</strong> {PROBLEM_TEXT[problem].long}
            </p>
          ))}
          {node.shape && (
            <>
              <CpuMap node={node} shape={node.shape} />
              <Owners node={node} shape={node.shape} />
              <CpuTable node={node} shape={node.shape} />
            </>
          )}
          <Facts node={node} />
        </>
      )}
    </Detail>
  );
}

/** The map's legend, and all that it says, in words. */
function Owners({ node, shape }: { readonly node: NodeItem; readonly shape: Shape }) {
  return (
    <div class="table-frame">
      <table class="owners">
        <caption>Who has which CPUs</caption>
        <thead>
          <tr>
            <th scope="col">
              <span class="unseen">Mark</span>
            </th>
            <th scope="col">Who</th>
            <th scope="col">CPUs</th>
            <th scope="col">Cores</th>
            <th scope="col">NUMA</th>
          </tr>
        </thead>
        <tbody>
          {ownersOf(node, shape).map(({ paint, who, about, slots, padded }, index) => (
            <tr key={`${who}-${index}`}>
              <td>
                <span class={`swatch ${paintName(paint)}`}>{markOf(paint)}</span>
              </td>
              <th scope="row">
                {who}
                {about !== '' && <span class="about">{about}</span>}
                {padded.length > 0 && (
                  <span class="about">
                    <span class={`swatch is-small is-padding ${paintName(paint)}`} aria-hidden="true" /> {padded.length}{' '}
                    added for whole cores: CPU {formatCpus(padded.map((slot) => shape.slots[slot]!.cpu))}
                  </span>
                )}
              </th>
              <td class="cpus">{formatCpus(slots.map((slot) => shape.slots[slot]!.cpu))}</td>
              <td class="number">{new Set(slots.map((slot) => shape.slots[slot]!.core)).size}</td>
              <td class="number">{cellsOf(shape, slots).join(', ')}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function cellsOf({ cells, slots }: Shape, own: readonly number[]): number[] {
  const cores = new Set(own.map((slot) => slots[slot]!.core));
  return cells
    .filter(({ firstCore, cores: count }) => {
      for (let core = firstCore; core < firstCore + count; core++) if (cores.has(core)) return true;
      return false;
    })
    .map(({ id }) => id);
}

function Facts({ node: { shape, dpu, flags, problems } }: { readonly node: NodeItem }) {
  const facts: [string, string][] = [];
  if (shape) {
    const { kubelet, policy, wholeCores, alignment, scope, isolated } = shape.content;
    facts.push(['Kubelet', kubelet ?? 'version not reported']);
    facts.push(['CPU manager', `${policy}${wholeCores ? ', whole cores only (full-pcpus-only)' : ''}`]);
    facts.push(['Topology manager', [alignment ?? 'not reported', scope].filter(Boolean).join(', scope ')]);
    if (isolated) facts.push(['Isolated from the kernel’s scheduler', isolated]);
    if (shape.placeless.length > 0) facts.push(['Networks whose NUMA node is not known', shape.placeless.join(', ')]);
  }
  facts.push(['DPU', DPU_TEXT[dpu]]);
  facts.push(['Agent', agentState(flags, problems.includes('no-report'))]);
  return (
    <dl class="facts">
      {facts.map(([term, value]) => (
        <div key={term}>
          <dt>{term}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function agentState(flags: number, neverReported: boolean): string {
  if (neverReported) return 'no report';
  return (flags & 16) === 0 ? 'reports' : 'silent for too long';
}
