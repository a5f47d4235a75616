"""Sentences written by hand, ten a language, in the order of `CASES` of test_shapes_grammar.py."""

SENTENCES = {
    "en": """
        two small red hearts to the left of a blue star
        a blue star to the right of two small red hearts
        The picture shows three large blue arrows above an orange circle.
        The picture shows an orange circle below three large blue arrows.
        The picture shows four small green rings.
        two red stars to the left of four yellow triangles
        The picture shows a large black cross above two pink squares.
        a small purple ring to the right of three green circles
        The picture shows two yellow hearts below four large black stars.
        an orange arrow
    """,
    "de": """
        zwei kleine rote Herzen links von einem blauen Stern
        ein blauer Stern rechts von zwei kleinen roten Herzen
        Das Bild zeigt drei große blaue Pfeile über einem orangefarbenen Kreis.
        Das Bild zeigt einen orangefarbenen Kreis unter drei großen blauen Pfeilen.
        Das Bild zeigt vier kleine grüne Ringe.
        zwei rote Sterne links von vier gelben Dreiecken
        Das Bild zeigt ein großes schwarzes Kreuz über zwei rosafarbenen Quadraten.
        ein kleiner violetter Ring rechts von drei grünen Kreisen
        Das Bild zeigt zwei gelbe Herzen unter vier großen schwarzen Sternen.
        ein orangefarbener Pfeil
    """,
    "fr": """
        deux petits cœurs rouges à gauche d'une étoile bleue
        une étoile bleue à droite de deux petits cœurs rouges
        L'image montre trois grandes flèches bleues au-dessus d'un cercle orange.
        L'image montre un cercle orange en dessous de trois grandes flèches bleues.
        L'image montre quatre petits anneaux verts.
        deux étoiles rouges à gauche de quatre triangles jaunes
        L'image montre une grande croix noire au-dessus de deux carrés roses.
        un petit anneau violet à droite de trois cercles verts
        L'image montre deux cœurs jaunes en dessous de quatre grandes étoiles noires.
        une flèche orange
    """,
    "es": """
        dos corazones rojos pequeños a la izquierda de una estrella azul
        una estrella azul a la derecha de dos corazones rojos pequeños
        La imagen muestra tres flechas azules grandes encima de un círculo naranja.
        La imagen muestra un círculo naranja debajo de tres flechas azules grandes.
        La imagen muestra cuatro anillos verdes pequeños.
        dos estrellas rojas a la izquierda de cuatro triángulos amarillos
        La imagen muestra una cruz negra grande encima de dos cuadrados rosas.
        un anillo morado pequeño a la derecha de tres círculos verdes
        La imagen muestra dos corazones amarillos debajo de cuatro estrellas negras grandes.
        una flecha naranja
    """,
    "it": """
        due piccoli cuori rossi a sinistra di una stella blu
        una stella blu a destra di due piccoli cuori rossi
        L'immagine mostra tre grandi frecce blu sopra un cerchio arancione.
        L'immagine mostra un cerchio arancione sotto tre grandi frecce blu.
        L'immagine mostra quattro piccoli anelli verdi.
        due stelle rosse a sinistra di quattro triangoli gialli
        L'immagine mostra una grande croce nera sopra due quadrati rosa.
        un piccolo anello viola a destra di tre cerchi verdi
        L'immagine mostra due cuori gialli sotto quattro grandi stelle nere.
        una freccia arancione
    """,
    "ru": """
        два маленьких красных сердца слева от синей звезды
        синяя звезда справа от двух маленьких красных сердец
        На картинке три большие синие стрелки над оранжевым кругом.
        На картинке оранжевый круг под тремя большими синими стрелками.
        На картинке четыре маленьких зелёных кольца.
        две красные звезды слева от четырёх жёлтых треугольников
        На картинке большой чёрный крест над двумя розовыми квадратами.
        маленькое фиолетовое кольцо справа от трёх зелёных кругов
        На картинке два жёлтых сердца под четырьмя большими чёрными звёздами.
        оранжевая стрелка
    """,
    "cs": """
        dvě malá červená srdce vlevo od modré hvězdy
        modrá hvězda vpravo od dvou malých červených srdcí
        Na obrázku jsou tři velké modré šipky nad oranžovým kruhem.
        Na obrázku je oranžový kruh pod třemi velkými modrými šipkami.
        Na obrázku jsou čtyři malé zelené prstence.
        dvě červené hvězdy vlevo od čtyř žlutých trojúhelníků
        Na obrázku je velký černý kříž nad dvěma růžovými čtverci.
        malý fialový prstenec vpravo od tří zelených kruhů
        Na obrázku jsou dvě žlutá srdce pod čtyřmi velkými černými hvězdami.
        oranžová šipka
    """,
    "tr": """
        mavi bir yıldızın solundaki iki küçük kırmızı kalp
        iki küçük kırmızı kalbin sağındaki mavi bir yıldız
        Resimde turuncu bir dairenin üstünde üç büyük mavi ok var.
        Resimde üç büyük mavi okun altında turuncu bir daire var.
        Resimde dört küçük yeşil halka var.
        dört sarı üçgenin solundaki iki kırmızı yıldız
        Resimde iki pembe karenin üstünde büyük siyah bir haç var.
        üç yeşil dairenin sağındaki küçük mor bir halka
        Resimde dört büyük siyah yıldızın altında iki sarı kalp var.
        turuncu bir ok
    """,
    "hi": """
        एक नीले तारे के बाईं ओर दो छोटे लाल दिल
        दो छोटे लाल दिलों के दाईं ओर एक नीला तारा
        चित्र में एक नारंगी वृत्त के ऊपर तीन बड़े नीले तीर हैं।
        चित्र में तीन बड़े नीले तीरों के नीचे एक नारंगी वृत्त है।
        चित्र में चार छोटे हरे छल्ले हैं।
        चार पीले त्रिभुजों के बाईं ओर दो लाल तारे
        चित्र में दो गुलाबी वर्गों के ऊपर एक बड़ा काला क्रॉस है।
        तीन हरे वृत्तों के दाईं ओर एक छोटा बैंगनी छल्ला
        चित्र में चार बड़े काले तारों के नीचे दो पीले दिल हैं।
        एक नारंगी तीर
    """,
    "ja": """
        一つの青い星の左にある二つの小さな赤いハート
        二つの小さな赤いハートの右にある一つの青い星
        一つのオレンジ色の円の上に三つの大きな青い矢印があります。
        三つの大きな青い矢印の下に一つのオレンジ色の円があります。
        四つの小さな緑色の輪があります。
        四つの黄色い三角形の左にある二つの赤い星
        二つのピンク色の正方形の上に一つの大きな黒い十字があります。
        三つの緑色の円の右にある一つの小さな紫色の輪
        四つの大きな黒い星の下に二つの黄色いハートがあります。
        一つのオレンジ色の矢印
    """,
    "zh-Hans": """
        一颗蓝色星星左边的两颗红色的小爱心
        两颗红色的小爱心右边的一颗蓝色星星
        图中一个橙色圆形上方有三个蓝色的大箭头。
        图中三个蓝色的大箭头下方有一个橙色圆形。
        图中有四个绿色的小圆环。
        四个黄色三角形左边的两颗红色星星
        图中两个粉色正方形上方有一个黑色的大十字。
        三个绿色圆形右边的一个紫色的小圆环
        图中四颗黑色的大星星下方有两颗黄色爱心。
        一个橙色箭头
    """,
    "ko": """
        파란 별 한 개의 왼쪽에 있는 작은 빨간 하트 두 개
        작은 빨간 하트 두 개의 오른쪽에 있는 파란 별 한 개
        주황색 원 한 개의 위에 큰 파란 화살표 세 개가 있습니다.
        큰 파란 화살표 세 개의 아래에 주황색 원 한 개가 있습니다.
        그림에 작은 초록색 고리 네 개가 있습니다.
        노란 삼각형 네 개의 왼쪽에 있는 빨간 별 두 개
        분홍색 정사각형 두 개의 위에 큰 검은 십자가 한 개가 있습니다.
        초록색 원 세 개의 오른쪽에 있는 작은 보라색 고리 한 개
        큰 검은 별 네 개의 아래에 노란 하트 두 개가 있습니다.
        주황색 화살표 한 개
    """,
    "el": """
        δύο μικρές κόκκινες καρδιές αριστερά από ένα μπλε αστέρι
        ένα μπλε αστέρι δεξιά από δύο μικρές κόκκινες καρδιές
        Στην εικόνα υπάρχουν τρία μεγάλα μπλε βέλη πάνω από έναν πορτοκαλί κύκλο.
        Στην εικόνα υπάρχει ένας πορτοκαλί κύκλος κάτω από τρία μεγάλα μπλε βέλη.
        Στην εικόνα υπάρχουν τέσσερις μικροί πράσινοι δακτύλιοι.
        δύο κόκκινα αστέρια αριστερά από τέσσερα κίτρινα τρίγωνα
        Στην εικόνα υπάρχει ένας μεγάλος μαύρος σταυρός πάνω από δύο ροζ τετράγωνα.
        ένας μικρός μοβ δακτύλιος δεξιά από τρεις πράσινους κύκλους
        Στην εικόνα υπάρχουν δύο κίτρινες καρδιές κάτω από τέσσερα μεγάλα μαύρα αστέρια.
        ένα πορτοκαλί βέλος
    """,
    "id": """
        dua hati merah kecil di sebelah kiri sebuah bintang biru
        sebuah bintang biru di sebelah kanan dua hati merah kecil
        Pada gambar ada tiga panah biru besar di atas sebuah lingkaran oranye.
        Pada gambar ada sebuah lingkaran oranye di bawah tiga panah biru besar.
        Pada gambar ada empat cincin hijau kecil.
        dua bintang merah di sebelah kiri empat segitiga kuning
        Pada gambar ada sebuah salib hitam besar di atas dua persegi merah muda.
        sebuah cincin ungu kecil di sebelah kanan tiga lingkaran hijau
        Pada gambar ada dua hati kuning di bawah empat bintang hitam besar.
        sebuah panah oranye
    """,
    "fi": """
        kaksi pientä punaista sydäntä sinisen tähden vasemmalla puolella
        sininen tähti kahden pienen punaisen sydämen oikealla puolella
        Kuvassa on kolme isoa sinistä nuolta oranssin ympyrän yläpuolella.
        Kuvassa on oranssi ympyrä kolmen ison sinisen nuolen alapuolella.
        Kuvassa on neljä pientä vihreää rengasta.
        kaksi punaista tähteä neljän keltaisen kolmion vasemmalla puolella
        Kuvassa on iso musta risti kahden vaaleanpunaisen neliön yläpuolella.
        pieni violetti rengas kolmen vihreän ympyrän oikealla puolella
        Kuvassa on kaksi keltaista sydäntä neljän ison mustan tähden alapuolella.
        oranssi nuoli
    """,
}
