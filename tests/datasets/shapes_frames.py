"""Questions and statements about two pictures, written by hand, in the order of `CASES` of test_shapes_frames.py."""

FRAMES = {
    "en": """
        What colour is the star?
        What colour are the rings?
        What shape are the red figures?
        What shape is the small green figure?
        How many blue stars are there?
        How many orange crosses are there?
        Are there two large pink arrows above a ring?
        Is there a red heart?
        What is to the left of two black crosses?
        The left picture shows two large pink arrows above a ring.
        The right picture shows an orange arrow.
        Both pictures show three green stars.
        Exactly one of the pictures shows a blue circle below three black hearts.
        The left picture shows more rings than the right one.
        The right picture shows more yellow figures than the left one.
        two red figures to the left of a small star
        The picture shows three hearts below a pink figure.
    """,
    "de": """
        Welche Farbe hat der Stern?
        Welche Farbe haben die Ringe?
        Welche Form haben die roten Figuren?
        Welche Form hat die kleine grüne Figur?
        Wie viele blaue Sterne gibt es?
        Wie viele orangefarbene Kreuze gibt es?
        Gibt es zwei große rosafarbene Pfeile über einem Ring?
        Gibt es ein rotes Herz?
        Was ist links von zwei schwarzen Kreuzen zu sehen?
        Das linke Bild zeigt zwei große rosafarbene Pfeile über einem Ring.
        Das rechte Bild zeigt einen orangefarbenen Pfeil.
        Beide Bilder zeigen drei grüne Sterne.
        Genau eines der Bilder zeigt einen blauen Kreis unter drei schwarzen Herzen.
        Das linke Bild zeigt mehr Ringe als das rechte.
        Das rechte Bild zeigt mehr gelbe Figuren als das linke.
        zwei rote Figuren links von einem kleinen Stern
        Das Bild zeigt drei Herzen unter einer rosafarbenen Figur.
    """,
    "fr": """
        De quelle couleur est l'étoile ?
        De quelle couleur sont les anneaux ?
        Quelle forme ont les figures rouges ?
        Quelle forme a la petite figure verte ?
        Combien y a-t-il d'étoiles bleues ?
        Combien y a-t-il de croix orange ?
        Y a-t-il deux grandes flèches roses au-dessus d'un anneau ?
        Y a-t-il un cœur rouge ?
        Que voit-on à gauche de deux croix noires ?
        L'image de gauche montre deux grandes flèches roses au-dessus d'un anneau.
        L'image de droite montre une flèche orange.
        Les deux images montrent trois étoiles vertes.
        Une seule des deux images montre un cercle bleu en dessous de trois cœurs noirs.
        L'image de gauche montre plus d'anneaux que celle de droite.
        L'image de droite montre plus de figures jaunes que celle de gauche.
        deux figures rouges à gauche d'une petite étoile
        L'image montre trois cœurs en dessous d'une figure rose.
    """,
    "cs": """
        Jakou barvu má hvězda?
        Jakou barvu mají prstence?
        Jaký tvar mají červené útvary?
        Jaký tvar má malý zelený útvar?
        Kolik modrých hvězd je na obrázku?
        Kolik oranžových křížů je na obrázku?
        Jsou na obrázku dvě velké růžové šipky nad prstencem?
        Je na obrázku červené srdce?
        Co je vlevo od dvou černých křížů?
        Na levém obrázku jsou dvě velké růžové šipky nad prstencem.
        Na pravém obrázku je oranžová šipka.
        Na obou obrázcích jsou tři zelené hvězdy.
        Právě na jednom z obrázků je modrý kruh pod třemi černými srdci.
        Na levém obrázku je více prstenců než na pravém.
        Na pravém obrázku je více žlutých útvarů než na levém.
        dva červené útvary vlevo od malé hvězdy
        Na obrázku jsou tři srdce pod růžovým útvarem.
    """,
    "ja": """
        星は何色ですか。
        輪は何色ですか。
        赤い図形はどんな形ですか。
        小さな緑色の図形はどんな形ですか。
        青い星はいくつありますか。
        オレンジ色の十字はいくつありますか。
        一つの輪の上に二つの大きなピンク色の矢印はありますか。
        一つの赤いハートはありますか。
        二つの黒い十字の左に何がありますか。
        左の絵を見ると、一つの輪の上に二つの大きなピンク色の矢印があります。
        右の絵を見ると、一つのオレンジ色の矢印があります。
        どちらの絵にも三つの緑色の星があります。
        片方の絵だけに三つの黒いハートの下に一つの青い円があります。
        左の絵には右の絵より多くの輪があります。
        右の絵には左の絵より多くの黄色い図形があります。
        一つの小さな星の左にある二つの赤い図形
        一つのピンク色の図形の下に三つのハートがあります。
    """,
    "zh-Hans": """
        星星是什么颜色的？
        圆环是什么颜色的？
        红色图形是什么形状的？
        绿色的小图形是什么形状的？
        图中有多少蓝色星星？
        图中有多少橙色十字？
        图中一个圆环上方有两个粉色的大箭头吗？
        图中有一颗红色爱心吗？
        图中两个黑色十字左边有什么？
        左图中一个圆环上方有两个粉色的大箭头。
        右图中有一个橙色箭头。
        两张图中都有三颗绿色星星。
        只有一张图中三颗黑色爱心下方有一个蓝色圆形。
        左图中的圆环比右图中的多。
        右图中的黄色图形比左图中的多。
        一颗小星星左边的两个红色图形
        图中一个粉色图形下方有三颗爱心。
    """,
    "id": """
        Apa warna bintang itu?
        Apa warna cincin itu?
        Apa bentuk bangun merah itu?
        Apa bentuk bangun hijau kecil itu?
        Ada berapa bintang biru pada gambar?
        Ada berapa salib oranye pada gambar?
        Apakah ada dua panah merah muda besar di atas sebuah cincin?
        Apakah ada sebuah hati merah?
        Apa yang ada di sebelah kiri dua salib hitam?
        Gambar kiri menunjukkan dua panah merah muda besar di atas sebuah cincin.
        Gambar kanan menunjukkan sebuah panah oranye.
        Kedua gambar menunjukkan tiga bintang hijau.
        Hanya satu dari kedua gambar menunjukkan sebuah lingkaran biru di bawah tiga hati hitam.
        Gambar kiri menunjukkan lebih banyak cincin daripada gambar kanan.
        Gambar kanan menunjukkan lebih banyak bangun kuning daripada gambar kiri.
        dua bangun merah di sebelah kiri sebuah bintang kecil
        Pada gambar ada tiga hati di bawah sebuah bangun merah muda.
    """,
}
