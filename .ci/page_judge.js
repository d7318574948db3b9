// Measures a page from inside. Evaluated by .ci/page_judge.py; its value is an object of functions, each of which
// returns the faults that it finds as texts, or the texts that a reader sees.
(() => {
  const words = (text) => text.replace(/\s+/g, ' ').trim();
  const all = (selector) => [...document.querySelectorAll(selector)];

  // What a message calls an element.
  const name = (element) => {
    const own = element.tagName.toLowerCase() + (element.id && `#${element.id}`);
    const text = words(element.textContent).slice(0, 40);
    return text ? `<${own}> "${text}"` : `<${own}>`;
  };

  // Elements for screen readers alone are one pixel large.
  const isVisible = (element) => {
    const box = element.getBoundingClientRect();
    return element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && box.width > 1 && box.height > 1;
  };

  const textNodes = () => {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const nodes = [];
    while (walker.nextNode()) {
      const parent = walker.currentNode.parentElement;
      if (words(walker.currentNode.data) && !parent.closest('script, style, template, svg title, svg desc')) {
        nodes.push(walker.currentNode);
      }
    }
    return nodes;
  };
  const visibleTexts = () => textNodes().filter((node) => isVisible(node.parentElement)).map((node) => words(node.data));
  const openDetails = () => all('details').forEach((details) => { details.open = true; });

  // Controls that work without a script: radio buttons, check boxes and lists, with :checked in the style sheet.
  const choices = () => [
    ...all('input[type=radio], input[type=checkbox]').map((input) => () => { input.checked = true; }),
    ...all('option').map((option) => () => { option.selected = true; }),
  ];

  // A colour as [red, green, blue, alpha]. A canvas understands every notation.
  const context = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const rgba = (color) => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = color;
    context.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = context.getImageData(0, 0, 1, 1).data;
    return [red, green, blue, alpha / 255];
  };
  const over = (top, below) => [0, 1, 2].map((at) => top[at] * top[3] + below[at] * (1 - top[3])).concat(1);
  const luminance = (color) => color.slice(0, 3).map((value) => value / 255)
    .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
    .reduce((sum, value, at) => sum + value * [0.2126, 0.7152, 0.0722][at], 0);
  const contrast = (one, other) => {
    const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };

  const opacity = (element) => {
    const parent = element.parentElement;
    return Number(getComputedStyle(element).opacity) * (parent ? opacity(parent) : 1);
  };
  const backdrop = (element) => {
    const parent = element.parentElement;
    return over(rgba(getComputedStyle(element).backgroundColor), parent ? backdrop(parent) : canvas());
  };
  // The background that the colour scheme has below everything.
  const canvas = () => {
    const probe = document.body.appendChild(document.createElement('i'));
    probe.style.backgroundColor = 'Canvas';
    const color = rgba(getComputedStyle(probe).backgroundColor);
    probe.remove();
    return color;
  };
  const faded = (color, factor) => [...color.slice(0, 3), color[3] * factor];
  const fill = (element) => {
    const style = getComputedStyle(element);
    return style.fill === 'none' ? [0, 0, 0, 0] : faded(rgba(style.fill), style.fillOpacity * opacity(element));
  };
  const svgTexts = (svg) => [...svg.querySelectorAll('text')].filter(isVisible);

  // Shapes are painted in the order of the document.
  const svgContrast = (text) => {
    const svg = text.closest('svg');
    const below = backdrop(svg);
    const box = text.getBoundingClientRect();
    const shapes = [...svg.querySelectorAll('rect, circle, ellipse, path, polygon')].filter((shape) =>
      isVisible(shape) && shape.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING);
    return Math.min(...[0.1, 0.5, 0.9].map((part) => {
      const [x, y] = [box.left + part * box.width, (box.top + box.bottom) / 2];
      const behind = shapes.filter((shape) => {
        const area = shape.getBoundingClientRect();
        return area.left <= x && x <= area.right && area.top <= y && y <= area.bottom;
      }).reduce((color, shape) => over(fill(shape), color), below);
      return contrast(over(fill(text), behind), behind);
    }));
  };
  const htmlContrast = (element) => {
    const behind = backdrop(element);
    return contrast(over(faded(rgba(getComputedStyle(element).color), opacity(element)), behind), behind);
  };
  const visibleParents = () => [...new Set(textNodes().map((node) => node.parentElement).filter(isVisible))];
  // axe leaves out texts of an SVG and what has to be scrolled to.
  const weakTexts = () => visibleParents().flatMap((element) => {
    const ratio = element.closest('svg') ? svgContrast(element) : htmlContrast(element);
    return ratio < 4.5 ? [`${name(element)} has a contrast of ${ratio.toFixed(2)}`] : [];
  });
  const images = () => all('body, body *').filter((element) => getComputedStyle(element).backgroundImage !== 'none' && isVisible(element))
    .map((element) => `${name(element)} has a background whose contrast cannot be told`);

  const overlappingSvgTexts = () => all('svg').flatMap((svg) => {
    const texts = svgTexts(svg).map((text) => [text, text.getBoundingClientRect()]);
    // A quarter of a line is space above and below the letters.
    const meet = (one, other) => Math.min(one.right, other.right) - Math.max(one.left, other.left) > 1
      && Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top) > Math.min(one.height, other.height) / 4;
    return texts.flatMap(([text, box], at) => texts.slice(at + 1).filter(([, other]) => meet(box, other))
      .map(([other]) => `${name(text)} and ${name(other)}`));
  });

  const smallTexts = () => visibleParents().flatMap((element) => {
    const scale = element.closest('svg') ? Math.abs(element.getScreenCTM?.().d ?? 1) : 1;
    const size = parseFloat(getComputedStyle(element).fontSize) * scale;
    return size < 9.5 ? [`${name(element)} has letters of ${size.toFixed(1)} px`] : [];
  });

  const narrowCells = () => all('td, th').filter(isVisible).flatMap((cell) => {
    const content = document.createRange();
    content.selectNodeContents(cell);
    const [across, down] = [cell.getBoundingClientRect().width, content.getBoundingClientRect().height];
    return down > 2 * across ? [`${name(cell)} is ${down.toFixed()} px high in ${across.toFixed()} px of width`] : [];
  });

  const scrolls = (element) => {
    const parent = element.parentElement;
    return parent && parent !== document.body && (['auto', 'scroll'].includes(getComputedStyle(parent).overflowX) || scrolls(parent));
  };
  const width = () => document.documentElement.clientWidth;
  const overflow = () => {
    const scroll = document.documentElement.scrollWidth;
    return scroll > width() ? [`the page is ${scroll} px wide on a screen of ${width()} px`] : [];
  };
  const outside = () => all('body *').filter((element) => !element.closest('svg') || element.tagName === 'svg')
    .filter((element) => isVisible(element) && !scrolls(element)).flatMap((element) => {
      const { left, right } = element.getBoundingClientRect();
      return right > width() + 1 || left < -1 ? [`${name(element)} reaches from ${left.toFixed()} to ${right.toFixed()} px`] : [];
    });
  const cutOff = () => [
    ...all('body *').filter((element) => !(element instanceof SVGElement) && isVisible(element)).filter((element) => {
      const style = getComputedStyle(element);
      return (['hidden', 'clip'].includes(style.overflowX) && element.scrollWidth > element.clientWidth + 1)
        || (['hidden', 'clip'].includes(style.overflowY) && element.scrollHeight > element.clientHeight + 1);
    }).map(name),
    ...all('svg').flatMap((svg) => {
      const area = svg.getBoundingClientRect();
      return svgTexts(svg).filter((text) => {
        const box = text.getBoundingClientRect();
        return box.left < area.left - 1 || box.right > area.right + 1 || box.top < area.top - 3 || box.bottom > area.bottom + 3;
      }).map((text) => `${name(text)} in an SVG`);
    }),
  ];

  // What would be fetched, and where the page would go by itself.
  const isInside = (address) => /^(data:|#)/.test(address.trim());
  const references = () => {
    const attributes = ['src', 'srcset', 'poster', 'data', 'background'];
    const found = attributes.flatMap((attribute) => all(`[${attribute}]`).map((element) => [element, element.getAttribute(attribute)]));
    found.push(...all('link[href], use[href], image[href]').map((element) => [element, element.getAttribute('href')]));
    found.push(...all('meta[http-equiv=refresh i]').map((element) => [element, element.content]));
    const styles = [...all('style').map((style) => [style, style.textContent]),
      ...all('[style]').map((element) => [element, element.getAttribute('style')])];
    for (const [element, text] of styles) {
      found.push(...[...text.matchAll(/url\(\s*['"]?([^'")]+)|@import\s+['"]([^'"]+)/g)].map((match) => [element, match[1] ?? match[2]]));
    }
    return found.filter(([, address]) => !isInside(address)).map(([element, address]) => `${name(element)} refers to ${address}`);
  };
  const missingAnchors = () => all('a[href^="#"]').map((link) => link.getAttribute('href').slice(1))
    .filter((id) => id && !document.getElementById(decodeURIComponent(id))).map((id) => `#${id}`);
  const links = () => all('a[href]').map((link) => link.href);
  const missingDeclarations = () => ['meta[charset=utf-8 i]', 'meta[name=viewport]']
    .filter((selector) => !document.head.querySelector(selector));

  // Of texts that scripts wrote, not those to press or choose.
  const texts = () => [...new Set(textNodes()
    .filter((node) => isVisible(node.parentElement) && !node.parentElement.closest('button, select, label'))
    .map((node) => words(node.data)))];
  // Texts that stay hidden whatever is chosen. Changes the page.
  const hiddenTexts = () => {
    const seen = new Set(visibleTexts());
    for (const choose of choices()) {
      choose();
      visibleTexts().forEach((text) => seen.add(text));
    }
    return textNodes().map((node) => words(node.data))
      .filter((text) => !seen.has(text)).map((text) => `"${text.slice(0, 80)}"`);
  };

  const layout = () => ({ overflow: overflow(), outside: outside(), 'cut-off': cutOff(), 'small-text': smallTexts(),
    'narrow-cell': narrowCells(), contrast: [...weakTexts(), ...images()], overlap: overlappingSvgTexts() });
  const source = () => ({ reference: references(), anchor: missingAnchors(), declaration: missingDeclarations() });
  return { openDetails, layout, source, links, texts, hiddenTexts };
})()
