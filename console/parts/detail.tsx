import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { StateVerdict } from '../data/wire.ts';
import { go, hashOf, type Route } from '../state/route.ts';
import { OldAge } from './ago.tsx';

export interface DetailProps {
  readonly title: string;
  readonly kind: string;
  readonly back: Route;
  readonly children: ComponentChildren;
}

/** The item that was selected in the list. The focus moves to its heading, and back to the list with Escape. */
export function Detail({ title, kind, back, children }: DetailProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus({ preventScroll: true }), []);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== 'Escape' || event.defaultPrevented) return;
      go(back);
      document.querySelector<HTMLElement>('[role="grid"]')?.focus();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [back]);
  return (
    <article class="detail" aria-label={`${kind} ${title}`}>
      <header class="detail-head">
        <div>
          <p class="kind">{kind}</p>
          <h2 ref={heading} tabIndex={-1}>
            {title}
          </h2>
        </div>
        <a class="close" href={hashOf(back)}>
          <span class="unseen">Close</span>
          <span aria-hidden="true">✕</span>
        </a>
      </header>
      {children}
    </article>
  );
}

export type Fact = readonly [term: string, value: ComponentChildren];

export function Facts({ facts }: { readonly facts: readonly Fact[] }) {
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

/** @param look class of each paragraph */
export function Paragraphs({ texts, look }: { readonly texts: readonly string[]; readonly look: string }) {
  return texts.map((text) => (
    <p key={text} class={look}>
      {text}
    </p>
  ));
}

export function CpuList({ cpus }: { readonly cpus: string }) {
  return cpus.split(/(?<=,)/).map((part) => (
    <>
      <span key={part} class="unbroken">
        {part}
      </span>
      <wbr />
    </>
  ));
}

const VERDICTS: Readonly<Record<StateVerdict, readonly [look: string, text: string]>> = {
  ok: ['is-good', 'OK'],
  stopped: ['is-stopped', 'Stopped'],
  waiting: ['is-waiting', 'Waiting'],
  degraded: ['is-waiting', 'Degraded'],
  broken: ['is-bad', 'Broken'],
};

export function VerdictBadge({ verdict, reason }: { readonly verdict: StateVerdict; readonly reason: string }) {
  const [look, text] = VERDICTS[verdict];
  return (
    <span class={`badge ${look}`} title={reason}>
      {verdict === 'ok' ? text : `${text}: ${reason}`}
      <OldAge />
    </span>
  );
}
