import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { go, hashOf, type Route } from '../state/route.ts';

export interface DetailProps {
  readonly title: string;
  readonly kind: string;
  /** The address after closing. */
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
