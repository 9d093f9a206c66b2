import { useState } from 'preact/hooks';
import { type NodeItem, nodeItem } from '../data/node.ts';
import type { DrainEntry, DrainPicture } from '../data/wire.ts';
import { type ServerAnswer, useAnswer } from '../state/ask.ts';
import { hashOf } from '../state/route.ts';
import { store } from '../state/state.ts';
import { CpuMap } from './cpu-map.tsx';
import { CpuList, Paragraphs } from './detail.tsx';
import { Remedies } from './remedies.tsx';

const REFRESH_MILLISECONDS = 30_000;

/** Asked for only when someone wants to know: the server then reads all nodes. */
export function DrainPreview({ node }: { readonly node: NodeItem }) {
  const [requested, setRequested] = useState<string | undefined>(undefined);
  const isRequested = requested === node.name;
  const url = isRequested ? `/drain?node=${encodeURIComponent(node.name)}` : undefined;
  const answer = useAnswer<DrainPicture>(url, REFRESH_MILLISECONDS);
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

function Answer({ node, answer }: { readonly node: NodeItem; readonly answer: ServerAnswer<DrainPicture> }) {
  if (answer === undefined) return <p class="about">Predicting every node …</p>;
  if ('failed' in answer) return <p class="about">{answer.failed}</p>;
  const { vms, orderMatters, notes } = answer.data;
  if (vms.length === 0) return <p>No VM runs here.</p>;
  const migrating = vms.filter(({ outcome }) => outcome === 'migrates').length;
  const targets = [...new Set(vms.flatMap(({ to }) => to ?? []))];
  return (
    <>
      <p class={migrating === vms.length ? 'about' : 'problem is-mild'}>
        {migrating} of {vms.length} {vms.length === 1 ? 'VM' : 'VMs'} would migrate.
        {orderMatters && ' Another order leaves VMs without a place.'}
      </p>
      <Entries vms={vms} />
      <Pictures title={node.name} before={node} after={without(node, vms)} />
      {targets.map((name) => {
        const target = store.nodes.get(name);
        const there = vms.filter(({ to }) => to === name);
        return target && <Pictures key={name} title={name} before={target} after={withVms(target, there)} />;
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
      <div class="table-frame">
        <table>
          <caption class="unseen">VMs in this order</caption>
          <thead>
            <tr>
              <th scope="col">VM</th>
              <th scope="col">Then</th>
              <th scope="col">Node</th>
              <th scope="col">CPUs</th>
            </tr>
          </thead>
          <tbody>
            {vms.map(({ vm, outcome, to, cpus, text }) => (
              <tr key={vm}>
                <th scope="row">
                  <a href={hashOf({ list: 'vms', chosen: vm })}>{vm}</a>
                  {text !== '' && <span class="about">{text}</span>}
                </th>
                <td>{OUTCOMES[outcome]}</td>
                <td>{to === undefined ? '' : <a href={hashOf({ list: 'nodes', chosen: to })}>{to}</a>}</td>
                <td class="cpus">{to !== undefined && (cpus === '' ? 'shared' : <CpuList cpus={cpus} />)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <Remedies entries={vms.flatMap(({ remedies }) => remedies)} />
    </>
  );
}

interface PicturesProps {
  readonly title: string;
  readonly before: NodeItem;
  readonly after: NodeItem;
}

function Pictures({ title, before, after }: PicturesProps) {
  const { shape } = before;
  if (shape === undefined) return null;
  return (
    <div class="before-after">
      {[
        { when: 'before', node: before },
        { when: 'after', node: after },
      ].map(({ when, node }) => (
        <figure key={when}>
          <figcaption>
            {title}, {when}
          </figcaption>
          <CpuMap node={node} shape={shape} />
        </figure>
      ))}
    </div>
  );
}

/** The page has the shape itself. */
const contentOf = ({ shape: _, ...content }: NodeItem) => content;

const movesOff = ({ to, outcome }: DrainEntry) => to !== undefined || outcome === 'stops';

/** The node without the VMs that leave it. */
function without(node: NodeItem, vms: readonly DrainEntry[]): NodeItem {
  const gone = new Set(vms.filter(movesOff).map(({ vm }) => vm));
  return nodeItem(
    node.name,
    node.shape,
    { ...contentOf(node), owners: node.owners.filter(([vm]) => !gone.has(vm)) },
    node,
  );
}

/** The node with the VMs that come to it. */
function withVms(node: NodeItem, vms: readonly DrainEntry[]): NodeItem {
  const added = vms.filter(({ cpus }) => cpus !== '').map(({ vm, cpus }) => [vm, 'compute', cpus, 0] as const);
  return nodeItem(node.name, node.shape, { ...contentOf(node), owners: [...node.owners, ...added] }, node);
}
