import { useState } from 'preact/hooks';
import { type NodeItem, nodeItem } from '../data/node.ts';
import type { DrainEntry, DrainPicture } from '../data/wire.ts';
import { type ServerAnswer, useAnswer } from '../state/ask.ts';
import { store } from '../state/state.ts';
import { CpuMap } from './cpu-map.tsx';
import { CpuList, Link, Paragraphs, Table } from './detail.tsx';
import { Remedies } from './remedies.tsx';

/** Asked for only when someone wants to know: the server then reads all nodes. */
export function DrainPreview({ node }: { readonly node: NodeItem }) {
  const [requested, setRequested] = useState<string | undefined>(undefined);
  const isRequested = requested === node.name;
  const url = isRequested ? `/drain?node=${encodeURIComponent(node.name)}` : undefined;
  const answer = useAnswer<DrainPicture>(url);
  return (
    <section class="drain" aria-labelledby="drain" aria-busy={isRequested && answer === undefined}>
      <h3 id="drain">If it is drained</h3>
      {isRequested ? (
        <Answer node={node} answer={answer} />
      ) : (
        <p>
          <button type="button" onClick={() => setRequested(node.name)}>
            Where would its VMs go?
          </button>
        </p>
      )}
    </section>
  );
}

const movesOff = ({ to, outcome }: DrainEntry) => to !== undefined || outcome === 'stops';

function Answer({ node, answer }: { readonly node: NodeItem; readonly answer: ServerAnswer<DrainPicture> }) {
  if (answer === undefined) return <p class="about">Predicting every node …</p>;
  if ('failed' in answer) return <p class="about">{answer.failed}</p>;
  const { vms, orderMatters, notes } = answer.data;
  if (vms.length === 0) return <p>No VM runs here.</p>;
  const migrating = vms.filter(({ outcome }) => outcome === 'migrates').length;
  const targets = [...new Set(vms.flatMap(({ to }) => to ?? []))];
  const gone = new Set(vms.filter(movesOff).map(({ vm }) => vm));
  return (
    <>
      <p class={migrating === vms.length ? 'about' : 'problem is-mild'}>
        {migrating} of {vms.length} {vms.length === 1 ? 'VM' : 'VMs'} would migrate.
        {orderMatters && ' Another order leaves VMs without a place.'}
      </p>
      <Entries vms={vms} />
      <Pictures before={node} owners={node.owners.filter(([vm]) => !gone.has(vm))} />
      {targets.map((name) => {
        const target = store.nodes.get(name);
        const there = vms.filter(({ to, cpus }) => to === name && cpus !== '');
        const added = there.map(({ vm, cpus }) => [vm, 'compute', cpus, 0] as const);
        return target && <Pictures key={name} before={target} owners={[...target.owners, ...added]} />;
      })}
      <Paragraphs texts={notes} look="about" />
    </>
  );
}

const OUTCOMES = {
  migrates: 'migrates',
  restarts: 'restarts, without a migration',
  stops: 'stops',
  blocks: 'blocks the drain',
  unknown: 'unknown',
} as const;

function Entries({ vms }: { readonly vms: readonly DrainEntry[] }) {
  return (
    <>
      <Table caption="VMs in this order" heads={['VM', 'Then', 'Node', 'CPUs']}>
        {vms.map(({ vm, outcome, to, cpus, text }) => (
          <tr key={vm}>
            <th scope="row">
              <Link list="vms" chosen={vm} />
              {text !== '' && <span class="about">{text}</span>}
            </th>
            <td>{OUTCOMES[outcome]}</td>
            <td>{to === undefined ? '' : <Link list="nodes" chosen={to} />}</td>
            <td class="cpus">{to !== undefined && (cpus === '' ? 'shared' : <CpuList cpus={cpus} />)}</td>
          </tr>
        ))}
      </Table>
      <Remedies entries={vms.flatMap(({ remedies }) => remedies)} />
    </>
  );
}

/** A node before the drain, and with the owners after it. */
function Pictures({ before, owners }: Readonly<{ before: NodeItem; owners: NodeItem['owners'] }>) {
  const { name, shape, ...content } = before;
  if (shape === undefined) return null;
  const pictures = { before, after: nodeItem(name, shape, { ...content, shape: undefined, owners }, before) };
  return (
    <div class="before-after">
      {Object.entries(pictures).map(([when, node]) => (
        <figure key={when}>
          <figcaption>
            {name}, {when}
          </figcaption>
          <CpuMap node={node} shape={shape} />
        </figure>
      ))}
    </div>
  );
}
